"""Values of every named kind of secret, made at random from the documented alphabet and length, in five contexts.

No line here is a secret, and no scanner takes one for it: `<an36>` means 36 letters and digits. Facts about the
forms come from the services' documentation and from public rule sets.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

DIGITS, LOWER, UPPER = string.digits, string.ascii_lowercase, string.ascii_uppercase
ALPHABETS = {
    "dig": DIGITS,
    "hex": DIGITS + "abcdef",
    "HEX": DIGITS + "ABCDEF",
    "low": LOWER + DIGITS,
    "let": LOWER,
    "LET": LOWER + UPPER,
    "up": UPPER + DIGITS,
    "cap": UPPER + "234567",
    "an": LOWER + UPPER + DIGITS,
    "url": LOWER + UPPER + DIGITS + "_-",
    "base": LOWER + UPPER + DIGITS + "+/",
    "coin": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "bech": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "pw": LOWER + UPPER + DIGITS + "!#%*+?^~",
}
_FIELD = re.compile(r"<([a-zA-Z]+)(\d+)(?:-(\d+))?>|<uuid>")


@dataclass(frozen=True, slots=True)
class Kind:
    """One named kind: `form` is its value, `label` what people call it, `variable` its usual environment variable."""

    name: str
    form: str
    label: str
    variable: str


def _fill(form: str, rng: random.Random) -> str:
    def field(match: re.Match[str]) -> str:
        if match[0] == "<uuid>":
            text = "".join(rng.choices(ALPHABETS["hex"], k=32))
            return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
        least, most = int(match[2]), int(match[3] or match[2])
        return "".join(rng.choices(ALPHABETS[match[1]], k=rng.randint(least, most)))

    return _FIELD.sub(field, form)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _jwt(rng: random.Random) -> str:
    parts = (json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps({"sub": _fill("<dig10>", rng), "iat": 1516239022}))
    return ".".join(
        [base64.urlsafe_b64encode(p.encode()).decode().rstrip("=") for p in parts] + [_fill("<url43>", rng)]
    )


def _bitcoin(rng: random.Random) -> str:
    data = b"\x80" + rng.randbytes(32) + b"\x01"
    data += hashlib.sha256(hashlib.sha256(data).digest()).digest()[:4]
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = ALPHABETS["coin"][rest] + text
    return text


def _card(rng: random.Random) -> str:
    digits = _fill("4<dig14>", rng)
    total = sum(sum(divmod(2 * int(d), 10)) if place % 2 == 0 else int(d) for place, d in enumerate(digits))
    digits += str(-total % 10)
    return " ".join(digits[at : at + 4] for at in range(0, 16, 4))


def _ssn(rng: random.Random) -> str:
    return f"{rng.randint(1, 665):03}-{rng.randint(1, 99):02}-{rng.randint(1, 9999):04}"


def _discord(rng: random.Random) -> str:
    number = str(rng.randint(10**17, 10**18 - 1))
    return base64.b64encode(number.encode()).decode().rstrip("=") + _fill(".<url6>.<url38>", rng)


def _service_account(rng: random.Random) -> str:
    return (
        "ops_" + base64.b64encode(json.dumps({"signInAddress": "x", "k": rng.randbytes(150).hex()}).encode()).decode()
    )


def _sentry(rng: random.Random) -> str:
    about = json.dumps({"iat": 1700000000.1, "url": "https://sentry.io", "region_url": "https://us", "org": "acme"})
    return "sntrys_" + base64.b64encode(about.encode()).decode().rstrip("=") + _fill("_<base43>", rng)


def _grafana(rng: random.Random) -> str:
    return _encoded(json.dumps({"k": _fill("<an32>", rng), "n": "reader", "id": 1}, separators=(",", ":")).encode())


def private_key(rng: random.Random, name: str = "RSA PRIV" + "ATE KEY", headers: str = "") -> str:
    """A block of lines as `ssh-keygen`, `openssl` and `gpg` write it."""
    body = _encoded(rng.randbytes(700))
    lines = "\n".join(body[at : at + 64] for at in range(0, len(body), 64))
    return f"-----BEGIN {name}-----\n{headers}{lines}\n-----END {name}-----"


_MADE: dict[str, Callable[[random.Random], str]] = {
    "json web token": _jwt, "bitcoin wif": _bitcoin, "visa card": _card, "us social security number": _ssn,
    "discord bot token": _discord, "1password service account": _service_account, "sentry org token": _sentry,
    "grafana legacy key": _grafana,
    "rsa private key": private_key,
    "openssh private key": lambda rng: private_key(rng, "OPENSSH PRIV" + "ATE KEY"),
    "ec private key": lambda rng: private_key(rng, "EC PRIV" + "ATE KEY"),
    "pkcs8 private key": lambda rng: private_key(rng, "PRIV" + "ATE KEY"),
    "encrypted private key": lambda rng: private_key(
        rng, headers=f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{_fill('<HEX32>', rng)}\n\n"
    ),
    "pgp private key": lambda rng: private_key(
        rng, "PGP PRIV" + "ATE KEY BLOCK", "Version: GnuPG v2\n\n"
    ).replace("\n-----END", f"\n={_fill('<base4>', rng)}\n-----END"),
}  # fmt: skip

# name | form | label | variable. Without a label and a variable: the name, and the name in capitals.
_FORMS = """
anthropic api key | sk-ant-api03-<url93>AA | |
anthropic admin key | sk-ant-admin01-<url93>AA | |
openai key | sk-<an20>T3BlbkFJ<an20> | OpenAI key | OPENAI_API_KEY
openai project key | sk-proj-<url74>T3BlbkFJ<url74> | OpenAI key | OPENAI_API_KEY
openai service account | sk-svcacct-<url58>T3BlbkFJ<url58> | |
openrouter key | sk-or-v1-<hex64> | |
langfuse secret | sk-lf-<uuid> | |
huggingface token | hf_<LET34> | | HF_TOKEN
huggingface org token | api_org_<LET34> | |
groq key | gsk_<an52> | |
xai key | xai-<an80> | |
perplexity key | pplx-<an48> | |
replicate token | r8_<an37> | | REPLICATE_API_TOKEN
fireworks key | fw_<an24> | |
anyscale key | esecret_<low28> | |
pinecone key | pcsk_<an6>_<an63> | |
langsmith key | lsv2_pt_<hex32>_<hex10> | |
cerebras key | csk-<low48> | |
nvidia key | nvapi-<url64> | |
tavily key | tvly-dev-<an32> | |
firecrawl key | fc-<hex32> | |
jina key | jina_<an60> | |
elevenlabs key | sk_<hex48> | |
runpod key | rpa_<up40> | |
github personal token | ghp_<an36> | | GITHUB_TOKEN
github oauth token | gho_<an36> | |
github user token | ghu_<an36> | |
github server token | ghs_<an36> | |
github refresh token | ghr_<an36> | |
github fine-grained token | github_pat_<an22>_<an59> | | GH_TOKEN
gitlab personal token | glpat-<url20> | | GITLAB_TOKEN
gitlab routable token | glpat-<url27>.<low2><low7> | |
gitlab deploy token | gldt-<url20> | |
gitlab runner token | glrt-<url20> | |
gitlab trigger token | glptt-<hex40> | |
gitlab feed token | glft-<url20> | |
gitlab job token | glcbt-<an4>_<url20> | |
gitlab agent token | glagent-<url50> | |
gitlab oauth secret | gloas-<url64> | |
gitlab mail token | glimt-<url25> | |
gitlab scim token | glsoat-<url20> | |
gitlab registration token | GR1348941<url20> | |
bitbucket app password | ATBB<an32> | |
atlassian token | ATATT3<url180>=<HEX8> | |
npm token | npm_<an36> | | NPM_TOKEN
pypi token | pypi-AgEIcHlwaS5vcmc<url140> | |
rubygems token | rubygems_<hex48> | |
crates token | cio<an32> | |
nuget key | oy2<low43> | |
docker hub token | dckr_pat_<url27> | |
docker organisation token | dckr_oat_<url32> | |
clojars token | CLOJARS_<hex60> | |
artifactory api key | AKCp<an69> | |
artifactory reference token | cmVmdGtu<an56> | |
sonar user token | squ_<hex40> | |
sonar project token | sqp_<hex40> | |
sentry user token | sntryu_<hex64> | |
circleci token | CCIPAT_<an22>_<hex40> | |
buildkite token | bkua_<hex40> | |
launchdarkly sdk key | sdk-<uuid> | |
doppler token | dp.pt.<an43> | |
doppler service token | dp.st.dev.<an43> | |
vault service token | hvs.<url92> | | VAULT_TOKEN
vault batch token | hvb.<url140> | |
vault old token | s.<an24> | |
terraform cloud token | <an14>.atlasv1.<url67> | |
pulumi token | pul-<hex40> | |
infracost key | ico-<an32> | |
prefect key | pnu_<an36> | |
postman key | PMAK-<hex24>-<hex34> | |
readme key | rdme_<low70> | |
octopus key | API-<up26> | |
harness key | pat.<url22>.<an24>.<an20> | |
sourcegraph token | sgp_<hex16>_<hex40> | |
aws access key | AKIA<cap16> | | AWS_ACCESS_KEY_ID
aws access key of any digits | AKIA<up16> | AWS access key | AWS_ACCESS_KEY_ID
aws temporary key | ASIA<cap16> | |
aws secret key | <base40> | AWS secret access key | AWS_SECRET_ACCESS_KEY
aws bedrock key | ABSK<base120> | |
google api key | AIza<url35> | | GOOGLE_API_KEY
google oauth secret | GOCSPX-<url28> | |
google access token | ya29.<url120> | |
google refresh token | 1//0<url60> | |
firebase key | AAAA<url7>:<url140> | |
azure client secret | <an3>8Q~<an34> | |
azure storage key | <base86>== | Azure account key | AZURE_STORAGE_KEY
azure devops token | <an52>JQQJ99<an26> | |
digitalocean token | dop_v1_<hex64> | |
digitalocean oauth token | doo_v1_<hex64> | |
digitalocean refresh token | dor_v1_<hex64> | |
alibaba access key | LTAI<an20> | |
alibaba secret | <low30> | Alibaba secret | ALIBABA_CLOUD_SECRET
tencent key | AKID<an32> | |
yandex api key | AQVN<url36> | |
yandex access token | t1.<url40>.<url86> | |
yandex static key | YC<url38> | |
heroku key | HRKU-AA<url58> | |
heroku old key | <uuid> | Heroku API key | HEROKU_API_KEY
netlify token | nfp_<an36> | |
netlify old token | <url43> | Netlify token | NETLIFY_AUTH_TOKEN
vercel token | vcp_<an40> | |
render key | rnd_<an32> | |
fly token | fo1_<url43> | |
fly macaroon | fm2_<base160> | |
supabase token | sbp_<hex40> | |
supabase secret key | sb_secret_<url31> | |
planetscale token | pscale_tkn_<url43> | |
planetscale password | pscale_pw_<url43> | |
neon key | napi_<low64> | |
scaleway key | SCW<up17> | |
tailscale key | tskey-auth-<an17>-<an32> | |
cloudflare origin key | v1.0-<hex24>-<hex146> | |
cloudflare token | <url40> | Cloudflare token | CLOUDFLARE_API_TOKEN
cloudflare global key | <hex37> | Cloudflare key | CLOUDFLARE_API_KEY
openshift token | sha256~<url43> | |
databricks token | dapi<hex32> | |
clickhouse key | 4b1d<an38> | |
grafana service token | glsa_<an32>_<hex8> | |
grafana cloud token | glc_<base80> | |
new relic user key | NRAK-<up27> | |
new relic browser key | NRJS-<hex19> | |
new relic insert key | NRII-<low32> | |
dynatrace token | dt0c01.<up24>.<up64> | |
honeycomb key | hcaik_<low58> | |
datadog api key | <hex32> | Datadog key | DD_API_KEY
datadog app key | <hex40> | Datadog application key | DATADOG_APP_KEY
stripe secret key | sk_live_<an24> | |
stripe restricted key | rk_live_<an99> | |
stripe webhook secret | whsec_<an32> | |
square access token | EAAA<url60> | |
square oauth secret | sq0csp-<url43> | |
square old token | sq0atp-<url22> | |
paypal braintree token | access_token$production$<low16>$<hex32> | |
razorpay key | rzp_live_<an14> | |
flutterwave secret | FLWSECK_TEST-<hex32>-X | |
flutterwave live secret | FLWSECK-<hex32>-X | |
mollie key | live_<an30> | |
gocardless token | live_<url40> | |
plaid access token | access-production-<uuid> | |
plaid secret | <hex30> | Plaid secret | PLAID_SECRET
shopify access token | shpat_<hex32> | |
shopify shared secret | shpss_<hex32> | |
shopify app token | shppa_<hex32> | |
shippo token | shippo_live_<hex40> | |
easypost key | EZAK<an54> | |
duffel token | duffel_live_<url43> | |
adyen key | AQE<base60>-<base43>=-<an16> | |
lob key | live_<hex35> | Lob key | LOB_API_KEY
slack bot token | xoxb-<dig12>-<dig12>-<an24> | | SLACK_BOT_TOKEN
slack user token | xoxp-<dig12>-<dig12>-<dig12>-<hex32> | |
slack app token | xapp-1-<up11>-<dig13>-<hex64> | |
slack refresh token | xoxe-1-<up146> | |
slack webhook | https://hooks.slack.com/services/T<up10>/B<up10>/<an24> | |
teams webhook | https://acme.webhook.office.com/webhookb2/<uuid>@<uuid>/IncomingWebhook/<hex32>/<uuid> | |
discord webhook | https://discord.com/api/webhooks/<dig18>/<url68> | |
discord client secret | <url32> | Discord client secret | DISCORD_CLIENT_SECRET
telegram bot token | <dig10>:AA<url33> | | TELEGRAM_BOT_TOKEN
twilio key | SK<hex32> | |
twilio auth token | <hex32> | Twilio auth token | TWILIO_AUTH_TOKEN
sendgrid key | SG.<url22>.<url43> | |
mailgun private key | key-<hex32> | |
mailgun signing key | <hex32>-<hex8>-<hex8> | |
mailchimp key | <hex32>-us<dig2> | |
mandrill key | md-<an22> | |
brevo key | xkeysib-<hex64>-<an16> | |
resend key | re_<an8>_<an24> | |
hubspot token | pat-na1-<uuid> | |
intercom token | dG9rO<base75>= | |
mattermost token | <low26> | Mattermost token | MATTERMOST_TOKEN
messagebird key | <an25> | MessageBird key | MESSAGEBIRD_ACCESS_KEY
notion token | ntn_<dig11><an35> | |
notion old token | secret_<an43> | |
linear key | lin_api_<an40> | |
airtable token | pat<an14>.<hex64> | |
asana token | 1/<dig16>:<hex32> | |
figma token | figd_<url40> | |
typeform token | tfp_<url59> | |
contentful token | CFPAT-<url43> | |
contentful delivery token | <url43> | Contentful delivery token | CONTENTFUL_ACCESS_TOKEN
dropbox token | sl.<url135> | |
clickup token | pk_<dig8>_<up32> | |
mapbox secret token | sk.eyJ<an60>.<an22> | |
posthog key | phx_<an43> | |
frameio token | fio-u-<url64> | |
beamer token | b_<url44> | Beamer key | BEAMER_API_KEY
adobe client secret | p8e-<url32> | |
authress key | sc_<low16>.<low5>.acc_<low20>.<url60> | |
defined networking token | dnkey-<low26>-<low52> | |
settlemint token | sm_pat_<an16> | |
intra42 secret | s-s4t2ud-<hex64> | |
maxmind key | <an6>_<an29>_mmk | |
scalingo token | tk-us-<url48> | |
facebook page token | EAAC<an120> | |
facebook app token | <dig15>|<url27> | |
facebook secret | <hex32> | Facebook app secret | FACEBOOK_APP_SECRET
twitter bearer token | AAAAAAAAAAAAAAAAAAAAAA<an90> | |
twitter access secret | <an45> | Twitter access secret | TWITTER_ACCESS_SECRET
twitter api secret | <an50> | Twitter API secret | TWITTER_API_SECRET
twitch token | oauth:<low30> | |
okta token | 00<url40> | Okta token | OKTA_API_TOKEN
adafruit io key | aio_<an28> | |
checkout secret | sk_test_<uuid> | |
ebay secret | PRD-<hex12>-<hex4>-<hex4>-<hex4>-<hex4> | |
ionic token | ion_<an42> | |
logicmonitor token | lmb_<base60> | |
midtrans key | Mid-server-<url24> | |
persona key | persona_production_<hex36> | |
samsara token | samsara_api_<an30> | |
wakatime key | waka_<uuid> | |
zuplo key | zpka_<hex32>_<hex8> | |
openai session | sess-<an40> | |
mongodb service key | mdb_sa_sk_<an40> | |
snyk service token | snyk_sat.<low8>.<an40> | |
docker swarm token | SWMTKN-1-<low50>-<low25> | |
close key | api_<an22>.<an22> | |
endor key | endr+<an16> | |
fleetbase key | flb_live_<an20> | |
flexport token | shltm_<url40> | |
nightfall key | NF-<an32> | |
robinhood key | rh-api-<uuid> | |
salad key | salad_cloud_user_<an30> | |
salesforce access token | 00D<an12>!<an96> | |
salesforce consumer key | 3MVG9<an80> | |
stripe client secret | pi_<an24>_secret_<an25> | |
trufflehog key | thog-secret-<hex32> | |
ubidots token | BBFF-<an30> | |
voiceflow key | VF.DM.<hex24>.<an16> | |
zoho token | 1000.<hex32>.<hex32> | |
tines webhook | https://acme.tines.com/webhook/<hex32>/<hex32> | |
django key | django-insecure-<low50> | |
password hash | $6$<an12>$<an86> | |
newrelic license | <hex36>NRAL | |
gitlab runner token | glrtr-<url20> | |
apify token | apify_api_<an36> | |
cockroachdb key | CCDB1_<an22>_<an40> | |
lichess token | lip_<an20> | |
amazon oauth secret | amzn1.oa2-cs.v1.<hex64> | |
amazon mws token | amzn.mws.<uuid> | |
paddle key | pdl_live_apikey_<low26>_<an22>_<an3> | |
polar token | polar_oat_<an40> | |
rootly token | rootly_<hex64> | |
statsig key | secret-<an43> | |
xata key | xau_<an36> | |
deno token | ddp_<an36> | |
astra token | AstraCS:<LET24>:<hex64> | |
inngest key | signkey-prod-<hex64> | |
stytch secret | secret-live-<url36> | |
pubnub secret | sec-c-<uuid> | |
aiven token | AVNS_<url20> | |
akamai token | akab-<low16>-<low16> | |
upcloud token | ucat_<up26> | |
socket token | sktsec_<url40> | |
telnyx key | KEY0<HEX32>_<an22> | |
honeybadger key | hbp_<an36> | |
azure cache key | <an33>AzCa<an7>= | |
1password secret key | A3-<up6>-<up6>-<up5>-<up5>-<up5>-<up5> | |
age secret key | AGE-SECRET-KEY-1<bech58> | |
bitcoin extended key | xprv<coin107> | |
adafruit key | <low32> | Adafruit key | ADAFRUIT_IO_KEY
algolia key | <hex32> | Algolia admin key | ALGOLIA_API_KEY
asana secret | <low32> | Asana client secret | ASANA_CLIENT_SECRET
bitbucket secret | <an64> | Bitbucket client secret | BITBUCKET_CLIENT_SECRET
codecov token | <uuid> | Codecov token | CODECOV_TOKEN
cohere key | <an40> | Cohere key | CO_API_KEY
coinbase token | <low64> | Coinbase token | COINBASE_TOKEN
confluent secret | <base64> | Confluent secret | CONFLUENT_SECRET
drone token | <low32> | Drone token | DRONE_TOKEN
etsy key | <low24> | Etsy key | ETSY_API_KEY
fastly token | <url32> | Fastly token | FASTLY_API_TOKEN
finnhub key | <low20> | Finnhub key | FINNHUB_API_KEY
flickr key | <hex32> | Flickr key | FLICKR_API_KEY
freshbooks token | <hex64> | FreshBooks token | FRESHBOOKS_TOKEN
jfrog key | <an73> | JFrog key | JFROG_API_KEY
kraken key | <base86>== | Kraken private key | KRAKEN_PRIVATE_KEY
kucoin secret | <uuid> | KuCoin secret | KUCOIN_SECRET
launchdarkly token | <url40> | LaunchDarkly token | LAUNCHDARKLY_TOKEN
linkedin secret | <an16> | LinkedIn client secret | LINKEDIN_CLIENT_SECRET
looker secret | <low24> | Looker client secret | LOOKER_CLIENT_SECRET
meraki key | <hex40> | Meraki key | MERAKI_API_KEY
mistral key | <an32> | Mistral key | MISTRAL_API_KEY
pagerduty key | <an20> | PagerDuty key | PAGERDUTY_TOKEN
rapidapi key | <low50> | RapidAPI key | RAPIDAPI_KEY
sendbird token | <hex40> | Sendbird token | SENDBIRD_API_TOKEN
sentry old token | <hex64> | Sentry token | SENTRY_AUTH_TOKEN
snyk token | <uuid> | Snyk token | SNYK_TOKEN
spotify secret | <hex32> | Spotify client secret | SPOTIFY_CLIENT_SECRET
squarespace key | <uuid> | Squarespace key | SQUARESPACE_API_KEY
sumologic key | <an64> | Sumologic access key | SUMOLOGIC_ACCESS_KEY
trello token | <hex64> | Trello token | TRELLO_TOKEN
travis token | <an22> | Travis token | TRAVIS_TOKEN
zendesk token | <an40> | Zendesk token | ZENDESK_TOKEN
wireguard key | <base43>= | WireGuard private key | WG_PRIVATE_KEY
django secret key | <pw50> | Django secret key | DJANGO_SECRET_KEY
database password | <pw16> | database password | DB_PASSWORD
json web token | | token | JWT
bitcoin wif | | Bitcoin private key | WALLET_KEY
visa card | | card number | CARD
us social security number | | social security number | SSN
discord bot token | | |
1password service account | | | OP_SERVICE_ACCOUNT_TOKEN
sentry org token | | |
grafana legacy key | | |
rsa private key | | |
openssh private key | | |
ec private key | | |
pkcs8 private key | | |
encrypted private key | | |
pgp private key | | |
"""


def _kinds() -> dict[str, Kind]:
    kinds = {}
    for line in _FORMS.strip().splitlines():
        # The form of one kind has a bar: the name is before the first, label and variable are after the last two.
        name, rest = line.split("|", 1)
        form, label, variable = (part.strip() for part in rest.rsplit("|", 2))
        name = name.strip()
        kinds[name] = Kind(name, form, label or name, variable or name.upper().replace(" ", "_").replace("-", "_"))
    return kinds


KINDS = _kinds()


def make_value(kind: Kind, rng: random.Random) -> str:
    """A new value of this kind."""
    made = _MADE.get(kind.name)
    return made(rng) if made else _fill(kind.form, rng)


# Several forms of each context; the choice of one is also random.
CONTEXTS: dict[str, tuple[str, ...]] = {
    "sentence": (
        "Our {label} is {value} and should be rotated soon.",
        "For the {label} please use {value} from now on.",
        "I changed the {label} yesterday. The new one: {value}",
        "Anna sent me the {label} ({value}), keep it safe.",
    ),
    "shell": ("export {variable}={value}", 'export {variable}="{value}"', "{variable}='{value}' ./deploy.sh --all"),
    "json": (
        '{{"{key}": "{value}", "retries": 3}}',
        '{{"env": [{{"name": "{variable}", "value": "{value}"}}]}}',
        '{{"config": {{\n    "name": "acme",\n    "{key}": "{value}"\n  }}\n}}',
    ),
    "yaml": (
        "{key}: {value}\nregion: eu-central-1",
        "env:\n  - name: {variable}\n    value: {value}\n",
        'services:\n  app:\n    {key}: "{value}"\n    replicas: 2',
    ),
    "header or address": (
        "curl -H 'Authorization: Bearer {value}' https://api.example.com/v1/items",
        "X-Api-Key: {value}",
        "https://api.example.com/v1/items?{key}={value}&page=2",
        "GET /v1/items HTTP/1.1\nHost: api.example.com\nAuthorization: Token {value}\n",
    ),
}


def in_context(kind: Kind, value: str, context: str, rng: random.Random) -> str:
    """A text with the value in it. A key of several lines is written in JSON as JSON writes it."""
    form = rng.choice(CONTEXTS[context])
    if "\n" in value and context == "json":
        value = json.dumps(value)[1:-1]
    if "?" in form:
        value = quote(value, safe="")
    key = kind.variable.lower()
    return form.format(label=kind.label, value=value, variable=kind.variable, key=key)


def secret_part(value: str) -> str:
    """A piece of the value that must not be left: eight characters of its middle."""
    text = value.rpartition("/")[2] if "://" in value else value
    middle = len(text) // 2
    return text[middle - 4 : middle + 4]
