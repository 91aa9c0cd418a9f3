"""Training rows from public documentation, question sets and code.

The sources are git snapshots below --mirror and wheels of PyPI packages below --code.

Every row carries its source (src) and licence (lic). The texts are for training only: do not commit them.

    python collect.py --mirror MIRROR --code WHEELS --out parts
"""

from __future__ import annotations

import argparse
import ast
import csv
import io
import json
import random
import re
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from rows import Row, write_rows

# language -> (snapshot, pattern of paths, source, licence)
DOCS_EN = [
    ("kubernetes+website", r"^content/en/docs/.*\.md$", "k8s", "CC-BY-4.0", 900),
    ("mdn+content", r"^files/en-us/.*index\.md$", "mdn", "CC-BY-SA-2.5", 3500),
    ("fastapi+fastapi", r"^docs/en/docs/.*\.md$", "fastapi", "MIT", 300),
    ("python+peps", r"^peps/pep-\d+\.rst$", "pep", "PD/CC0", 400),
    ("zulip+zulip", r"^(docs|help|starlight_help/src/content/docs)/.*\.mdx?$", "zulip", "Apache-2.0", 700),
    ("encode+starlette", r"^docs/.*\.md$", "starlette", "BSD-3", 60),
]
DOCS_OTHER = {
    "es": [
        ("kubernetes+website", "content/es/docs"),
        ("fastapi+fastapi", "docs/es/docs"),
        ("mdn+translated-content", "files/es"),
    ],
    "de": [
        ("kubernetes+website", "content/de/docs"),
        ("fastapi+fastapi", "docs/de/docs"),
        ("mdn+translated-content", "files/de"),
    ],
    "fr": [
        ("kubernetes+website", "content/fr/docs"),
        ("fastapi+fastapi", "docs/fr/docs"),
        ("mdn+translated-content", "files/fr"),
    ],
    "it": [("kubernetes+website", "content/it/docs")],
    "pl": [("kubernetes+website", "content/pl/docs"), ("reactjs+pl.react.dev", "src/content")],
    "pt": [
        ("kubernetes+website", "content/pt-br/docs"),
        ("fastapi+fastapi", "docs/pt/docs"),
        ("mdn+translated-content", "files/pt-br"),
    ],
    "ru": [
        ("kubernetes+website", "content/ru/docs"),
        ("fastapi+fastapi", "docs/ru/docs"),
        ("mdn+translated-content", "files/ru"),
    ],
    "zh": [
        ("kubernetes+website", "content/zh-cn/docs"),
        ("fastapi+fastapi", "docs/zh/docs"),
        ("mdn+translated-content", "files/zh-cn"),
    ],
    "ja": [
        ("kubernetes+website", "content/ja/docs"),
        ("fastapi+fastapi", "docs/ja/docs"),
        ("mdn+translated-content", "files/ja"),
    ],
    "ko": [
        ("kubernetes+website", "content/ko/docs"),
        ("fastapi+fastapi", "docs/ko/docs"),
        ("mdn+translated-content", "files/ko"),
    ],
    "hi": [("kubernetes+website", "content/hi/docs"), ("fastapi+fastapi", "docs/hi/docs")],
    "ar": [("reactjs+ar.react.dev", "src/content")],
}
LICENCE = {
    "kubernetes+website": "CC-BY-4.0",
    "fastapi+fastapi": "MIT",
    "mdn+translated-content": "CC-BY-SA-2.5",
    "reactjs+pl.react.dev": "CC-BY-4.0",
    "reactjs+ar.react.dev": "CC-BY-4.0",
}
TLDR = {
    "es": "es",
    "de": "de",
    "fr": "fr",
    "it": "it",
    "pt": "pt_BR",
    "nl": "nl",
    "pl": "pl",
    "ru": "ru",
    "zh": "zh",
    "ja": "ja",
    "ko": "ko",
    "ar": "ar",
    "hi": "hi",
}
SECTION_LIMIT = 800


def git_dir(mirror: Path, repo: str) -> Path:
    path = mirror / repo / "repo"
    return path / ".git" if (path / ".git").is_dir() else path


def list_files(mirror: Path, repo: str, pattern: str) -> list[tuple[str, str]]:
    """(object name, path) of the files present in the snapshot that match the pattern."""
    out = subprocess.run(
        ["git", f"--git-dir={git_dir(mirror, repo)}", "ls-tree", "-r", "-l", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found = []
    for line in out.splitlines():
        match = re.match(r"\S+ blob (\S+)\s+(\S+)\t(.*)", line)
        if match and match[2] not in ("BAD", "-") and re.search(pattern, match[3]):
            found.append((match[1], match[3]))
    return found


def read_files(mirror: Path, repo: str, files: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    with subprocess.Popen(
        ["git", f"--git-dir={git_dir(mirror, repo)}", "cat-file", "--batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        for name, path in files:
            process.stdin.write((name + "\n").encode())
            process.stdin.flush()
            head = process.stdout.readline().split()
            if head[1] == b"missing":
                continue
            data = process.stdout.read(int(head[2]))
            process.stdout.read(1)
            yield path, data.decode("utf8", "replace")
        process.stdin.close()


def clean_markdown(text: str) -> tuple[str, str]:
    """(page title, text without front matter, macros, links and tags)."""
    title = ""
    front = re.match(r"^---\n(.*?)\n---\n", text, flags=re.S)
    if front:
        found = re.search(r"^title:\s*(.+)$", front[1], flags=re.M)
        title = found[1].strip("'\" ") if found else ""
        text = text[front.end() :]
    text = re.sub(r"\{\{[<%].*?[%>]\}\}", "", text, flags=re.S)
    text = re.sub(r"\{\{.*?\}\}", lambda m: re.sub(r'[{}"]|\w+\(|\)', "", m[0]), text)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)(\{[^}]*\})?", r"\1", text)
    text = re.sub(r"</?[a-zA-Z][^>]*>", "", text)
    return title, re.sub(r"\{[:#][^}]*\}", "", text)


def sections(text: str, low: int = 140) -> tuple[str, list[tuple[str, str]]]:
    """(page title, [(heading, text)]) with sections cut to about SECTION_LIMIT characters."""
    title, text = clean_markdown(text)
    found: list[tuple[str, str]] = []
    heading, lines = "", []

    def flush() -> None:
        body = re.sub(r"\n{2,}", "\n", "\n".join(lines)).strip()
        if len(body) < low:
            return
        if len(body) > SECTION_LIMIT:
            cut = max(body[:SECTION_LIMIT].rfind("\n"), body[:SECTION_LIMIT].rfind(". ") + 1, SECTION_LIMIT // 2)
            body = body[:cut].strip()
        found.append((heading, body))

    for line in text.splitlines():
        match = re.match(r"\s{0,3}(#{1,4})\s+(.*)", line)
        if match:
            flush()
            lines, heading = [], re.sub(r"[`*]", "", match[2]).strip()
            if len(match[1]) == 1 and not title:
                title = heading
        else:
            lines.append(line)
    flush()
    return title, found


IDENTIFIER = re.compile(r"`([A-Za-z_][\w.:()-]{3,40})`")
STOP = set(
    "the a an of to in for and or with on how what is are your you this that from by as at be using use into".split()
)


def keyword_queries(rng: random.Random, title: str, heading: str, text: str) -> list[str]:
    """What people type to find a page: its title, the heading, two words of both, an identifier."""
    words = [w for w in re.findall(r"[A-Za-z][\w-]{2,}", f"{title} {heading}") if w.lower() not in STOP]
    queries = []
    if len(heading.split()) > 1 or (
        IDENTIFIER.match(f"`{heading}`") and re.search(r"[_.()A-Z]", heading[1:])
    ):  # a lone word such as "Options" names nothing
        queries.append(heading.lower() if rng.random() < 0.5 else heading)
    if title and heading and title != heading:
        queries.append(f"{title} {heading}".lower())
    if len(words) > 2:
        pick = sorted(rng.sample(range(len(words)), 2))
        queries.append(" ".join(words[i].lower() for i in pick))
    found = IDENTIFIER.findall(text)
    names = [
        x for x in dict.fromkeys(found) if found.count(x) > 1 or x in heading or x in title
    ]  # what the section is about, not what it mentions
    if names:
        name = rng.choice(names)
        queries.append(
            name
            if rng.random() < 0.6
            else rng.choice(["how to use {}", "{} example", "what does {} do", "{} meaning"]).format(name)
        )
    return queries


GENERIC = set(
    (
        "see also|examples|specifications|browser compatibility|syntax|notes|description|what's next|value|values"
        "|before you begin|introduction|overview|parameters|attributes|return value|exceptions|abstract|rationale"
        "|motivation|copyright|references|recap|summary"
    ).split("|")
)


def docs_rows(mirror: Path, rng: random.Random, per_page: int = 4) -> Iterator[Row]:
    """Short queries -> section of English documentation; other sections of the same page are hard negatives."""
    for repo, pattern, src, lic, limit in DOCS_EN:
        files = list_files(mirror, repo, pattern)
        rng.shuffle(files)
        for _, text in read_files(mirror, repo, files[:limit]):
            title, parts = sections(text)
            usable = [i for i, (h, b) in enumerate(parts) if h.lower() not in GENERIC and b.count("|") < 20]
            for i in rng.sample(usable, min(per_page, len(usable))):
                heading, body = parts[i]
                queries = [q for q in keyword_queries(rng, title, heading, body) if 3 < len(q) < 90]
                others = [f"{title}\n{h}\n{b}"[:500] for j, (h, b) in enumerate(parts) if j != i and b.count("|") < 20]
                lead = title + "\n" if title and rng.random() < 0.5 else ""
                if queries:
                    yield {
                        "t": "K",
                        "q": queries,
                        "d": (lead + (heading + "\n" if heading and rng.random() < 0.6 else "") + body)[:SECTION_LIMIT],
                        "hn": others[:1],
                        "src": src,
                        "lic": lic,
                    }


SENTENCE = re.compile(r"(?<=[.!?。！？।؟])\s*(?=\S)")


def language_rows(mirror: Path, rng: random.Random, pages: int = 800, per_page: int = 4) -> Iterator[Row]:
    """Heading or sentence -> its section, in other languages."""
    for lang, places in DOCS_OTHER.items():
        cjk = lang in ("zh", "ja", "ko")
        for repo, folder in places:
            files = list_files(mirror, repo, rf"^{re.escape(folder)}/.*\.mdx?$")
            rng.shuffle(files)
            for _, text in read_files(mirror, repo, files[:pages]):
                title, parts = sections(text, 60 if cjk else 140)
                rng.shuffle(parts)
                for heading, body in parts[:per_page]:
                    pieces = [x.strip() for x in SENTENCE.split(body) if x.strip()]
                    low, high = (12, 90) if cjk else (40, 200)
                    good = [
                        i
                        for i, x in enumerate(pieces)
                        if low <= len(x) <= high and not re.search(r"[{}<>|`]{2}|```", x)
                    ]
                    queries = (
                        [heading if not title or heading == title else f"{title}: {heading}"]
                        if len(heading) > 5
                        else []
                    )
                    if len(pieces) > 2 and good:
                        i = rng.choice(good)
                        queries.append(pieces[i])
                        body = " ".join(pieces[:i] + pieces[i + 1 :])
                    if queries and len(body) > (50 if cjk else 120):
                        yield {
                            "t": "M",
                            "lang": lang,
                            "q": queries,
                            "d": ((heading + "\n") if rng.random() < 0.4 else "") + body[:700],
                            "src": repo.split("+")[0],
                            "lic": LICENCE[repo],
                        }


def tldr_page(text: str) -> tuple[str, str, list[tuple[str, str]]]:
    name = re.search(r"^# (.*)$", text, flags=re.M)
    about = [x[2:] for x in text.splitlines() if x.startswith("> ") and "://" not in x]
    examples = re.findall(r"^- (.*?)[:：]\s*\n+`(.*?)`$", text, flags=re.M)
    return (name[1] if name else ""), " ".join(about), [(a, re.sub(r"\{\{|\}\}", "", b)) for a, b in examples]


def tldr_rows(mirror: Path, rng: random.Random, limit: int = 1500) -> Iterator[Row]:
    """What a command does -> its help page (CC BY 4.0), in English and 13 other languages."""
    for lang, folder in [("en", None), *TLDR.items()]:
        pattern = r"^pages/.*\.md$" if folder is None else rf"^pages\.{folder}/.*\.md$"
        files = list_files(mirror, "tldr-pages+tldr", pattern)
        rng.shuffle(files)
        for _, text in read_files(mirror, "tldr-pages+tldr", files[: 6000 if lang == "en" else limit]):
            name, about, examples = tldr_page(text)
            examples = [x for x in examples if len(x[0]) > 14 and "tldr" not in x[1]]
            if len(examples) < 2 or not about:
                continue
            rng.shuffle(examples)
            asked, rest = [re.sub(r"\[(\w)\]", r"\1", examples[0][0])], examples[1:5]
            if lang == "en" and rng.random() < 0.5:
                asked[0] = "how to " + asked[0][:1].lower() + asked[0][1:]
            asked.append(about)
            body = f"{name}\n" + "\n".join(f"{a}: {b}" for a, b in [examples[0], *rest][:4])
            yield dict(
                t="K" if lang == "en" else "M",
                **({} if lang == "en" else {"lang": lang}),
                q=asked,
                d=body[:600],
                src="tldr",
                lic="CC-BY-4.0",
            )


def pubmedqa_rows(mirror: Path) -> Iterator[Row]:
    text = next(
        read_files(mirror, "pubmedqa+pubmedqa", list_files(mirror, "pubmedqa+pubmedqa", r"^data/ori_pqal\.json$"))
    )[1]
    for item in json.loads(text).values():
        yield {
            "t": "D",
            "q": [item["QUESTION"], "; ".join(m.lower() for m in item["MESHES"][:4])],
            "d": (" ".join(item["CONTEXTS"]))[:1000],
            "src": "PubMedQA",
            "lic": "MIT",
        }
        yield {"t": "D", "q": [item["QUESTION"]], "d": item["LONG_ANSWER"][:700], "src": "PubMedQA", "lic": "MIT"}


def medquad_rows(mirror: Path, rng: random.Random) -> Iterator[Row]:
    files = list_files(mirror, "abachaa+MedQuAD", r"^[1-9]_.*\.xml$")
    for _, text in read_files(mirror, "abachaa+MedQuAD", files):
        try:
            root = ET.fromstring(text.encode())
        except ET.ParseError:
            continue
        focus = (root.findtext("Focus") or "").strip()
        pairs = [
            (
                (p.findtext("Question") or "").strip(),
                " ".join((p.findtext("Answer") or "").split()),
                p.find("Question").get("qtype", ""),
            )
            for p in root.iter("QAPair")
        ]
        pairs = [x for x in pairs if len(x[1]) > 80]
        for i, (question, answer, kind) in enumerate(pairs):
            question = question.replace(" (are)", "").replace(" ?", "?")
            queries = [question]
            if focus and kind and rng.random() < 0.5:
                queries.append(f"{focus} {kind}".lower())
            start = 0 if rng.random() < 0.7 else min(len(answer) // 3, 400)
            yield {
                "t": "D",
                "q": queries,
                "d": answer[start : start + 900],
                "k": f"med.{focus}" if rng.random() < 0.5 else None,
                "hn": [pairs[(i + 1) % len(pairs)][1][:700]] if len(pairs) > 1 else [],
                "src": "MedQuAD",
                "lic": "CC-BY-4.0",
            }


def covidqa_rows(mirror: Path) -> Iterator[Row]:
    for _, text in read_files(
        mirror, "deepset-ai+COVID-QA", list_files(mirror, "deepset-ai+COVID-QA", r"200423_covidQA\.json$")
    ):
        for article in json.loads(text)["data"]:
            for paragraph in article["paragraphs"]:
                context = paragraph["context"]
                for qa in paragraph["qas"]:
                    if not qa.get("answers"):
                        continue
                    at = qa["answers"][0]["answer_start"]
                    start = max(0, context.rfind(". ", 0, max(0, at - 250)) + 2)
                    yield {
                        "t": "D",
                        "q": [qa["question"]],
                        "d": context[start : start + 800],
                        "src": "COVID-QA",
                        "lic": "Apache-2.0",
                    }


FREE = re.compile(r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|Unlicense|Public Domain)\b", re.I)


def package_licence(wheel: zipfile.ZipFile) -> str:
    """Licence of a wheel, read from its metadata."""
    for name in wheel.namelist():
        if name.endswith(".dist-info/METADATA"):
            text = wheel.read(name).decode("utf8", "replace").split("\n\n")[0]
            lines = [
                x.split(":", 1)[1].strip()
                for x in text.splitlines()
                if x.startswith(("License-Expression:", "License:"))
            ] + re.findall(r"Classifier: License :: (?:OSI Approved :: )?(.*)", text)
            named = [x for x in lines if x and x != "OSI Approved" and len(x) < 60]
            return named[0] if named else ""
    return ""


def functions(source: str) -> Iterator[tuple[str, str, str]]:
    """(name, first paragraph of the docstring, code without docstring) of the functions of a file."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    lines = source.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("__"):
            doc = ast.get_docstring(node) or ""
            code = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            first = " ".join(re.split(r"\n\s*\n|>>>|:param|Args:", doc.strip())[0].split())
            if 15 < len(first) < 220 and 80 < len(code) < 2400:
                body = re.sub(r'(r?"""|r?\'\'\')(.|\n)*?\1', "", code, count=1)
                yield node.name, first, re.sub(r"\n\s*\n", "\n", body)[:900]


LEAD_VERB = re.compile(
    r"^(Returns?|Gets?|Computes?|Calculates?|Checks?|Finds?|Converts?|Creates?|Parses?|Reads?|Writes?|Removes?|Adds?|Generates?|Sorts?|Tests?|Loads?|Sets?|Prints?|Determines?|Splits?)\b",
    re.I,
)


def code_queries(rng: random.Random, name: str, doc: str) -> list[str]:
    """The docstring, and how one would type it into a search box."""
    queries = [doc]
    short = re.split(r"[.:;(]", doc)[0]
    verb = LEAD_VERB.match(short)
    if verb and len(short.split()) < 14:
        plain = verb[1].lower()
        plain = plain[:-1] if plain.endswith("s") and not plain.endswith("ss") and plain not in ("process",) else plain
        rest = short[verb.end() :].strip()
        rest = re.sub(r"\b(the|a|an|given|this|if)\b ?", "", rest)
        queries.append(
            rng.choice(["python {} {}", "how to {} {} in python", "{} {} python", "{} {}"]).format(plain, rest).lower()
        )
    if "_" in name and len(name) > 9 and rng.random() < 0.4:
        queries.append(rng.choice(["python {}", "{}", "function to {}"]).format(name.strip("_").replace("_", " ")))
    return queries


def code_rows(mirror: Path, code: Path, rng: random.Random, per_package: int = 700) -> Iterator[Row]:
    for path in sorted(code.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            licence, package = package_licence(wheel), path.name.split("-")[0]
            if not FREE.search(licence) or re.search(r"GPL", licence):
                print("skipped package", package, "licence:", licence or "unknown", flush=True)
                continue
            found = []
            for info in wheel.infolist():
                if (
                    info.filename.endswith(".py")
                    and "test" not in info.filename
                    and "_vendor" not in info.filename
                    and info.file_size < 200_000
                ):
                    found += list(functions(wheel.read(info).decode("utf8", "replace")))
        rng.shuffle(found)
        print("package", package, licence, min(len(found), per_package), flush=True)
        for name, doc, body in found[:per_package]:
            yield {"t": "C", "q": code_queries(rng, name, doc), "d": body, "src": package, "lic": licence}
    for _, text in read_files(mirror, "TheAlgorithms+Python", list_files(mirror, "TheAlgorithms+Python", r"\.py$")):
        for name, doc, body in functions(text):
            yield {"t": "C", "q": code_queries(rng, name, doc), "d": body, "src": "TheAlgorithms", "lic": "MIT"}


YOU = [
    (r"\bdo you\b", "does {a}"),
    (r"\bare you\b", "is {a}"),
    (r"\bhave you\b", "has {a}"),
    (r"\bdid you\b", "did {a}"),
    (r"\bwere you\b", "was {a}"),
    (r"\bwould you\b", "would {a}"),
    (r"\bcan you\b", "can {a}"),
    (r"\bwill you\b", "will {a}"),
    (r"\byour\b", "{a}'s"),
    (r"\byours\b", "{a}'s"),
]
CHAT_NAMES = (
    "Anna Ben Carla David Elena Grace Hugo Jonas Kira Liam Mona Nils Olga Pablo Rosa Samir Tara Vera Yusuf Zoe".split()
)


def third_person(question: str, name: str) -> str | None:
    """«What do you do for a living?» -> «What does Anna do for a living?»; None if the rule does not fit."""
    if re.search(
        r"\b(about|with|to|for|and) you\b|\bit\b|\bthat\b|\bthere\b|\bthose\b|\bthem\b|\btoo\b|\belse\b|\bthis\b"
        r"|\bI\b|\bme\b",
        question,
        re.I,
    ):
        return None
    text, hits = question, 0
    for pattern, new in YOU:
        text, n = re.subn(pattern, new.format(a=name), text, flags=re.I)
        hits += n
    if not hits or hits > 2 or re.search(r"\byou\b", text, re.I):
        return None
    return text[:1].upper() + text[1:]


def persona_chat_rows(mirror: Path, rng: random.Random) -> Iterator[Row]:
    """Synthetic-Persona-Chat (CC BY 4.0): a question, put into the third person -> the turn that answers it."""
    repo = "google-research-datasets+Synthetic-Persona-Chat"
    for _, text in read_files(mirror, repo, list_files(mirror, repo, r"_(valid|test)\.csv$")):
        for record in csv.DictReader(io.StringIO(text)):
            turns = [
                re.sub(r"^User \d: ", "", x).strip()
                for x in (record.get("Best Generated Conversation") or "").splitlines()
                if x.startswith("User ")
            ]
            name = rng.choice(CHAT_NAMES)
            for i in range(len(turns) - 1):
                asked = [x.strip() for x in re.split(r"(?<=[.!?]) ", turns[i]) if x.strip().endswith("?")]
                answer = turns[i + 1]
                if not asked or not 20 < len(answer) < 300 or answer.endswith("?"):
                    continue
                question = third_person(asked[-1], name)
                if question and 15 < len(question) < 120:
                    others = [x for j, x in enumerate(turns) if j not in (i, i + 1) and len(x) > 20]
                    key = (
                        "chat." + re.sub(r"\W+", " ", question.replace(name, "")).lower().strip()
                    )  # people are asked the same things: not negatives of each other
                    yield {
                        "t": "T",
                        "q": [question],
                        "d": answer,
                        "a": name,
                        "k": key,
                        "hn": rng.sample(others, min(2, len(others))),
                        "src": "Synthetic-Persona-Chat",
                        "lic": "CC-BY-4.0",
                    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", type=Path, required=True)
    parser.add_argument("--code", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="docs,languages,science,code,chat")
    parser.add_argument("--seed", type=int, default=33)
    args = parser.parse_args()
    wanted = args.only.split(",")
    rng = random.Random(args.seed)
    if "science" in wanted:
        write_rows(
            args.out / "science.jsonl.xz",
            [*pubmedqa_rows(args.mirror), *medquad_rows(args.mirror, rng), *covidqa_rows(args.mirror)],
        )
    if "chat" in wanted:
        write_rows(args.out / "chat_public.jsonl.xz", persona_chat_rows(args.mirror, rng))
    if "code" in wanted:
        write_rows(args.out / "code.jsonl.xz", code_rows(args.mirror, args.code, rng))
    if "docs" in wanted:
        write_rows(
            args.out / "docs_keywords.jsonl.xz",
            [*docs_rows(args.mirror, rng), *(r for r in tldr_rows(args.mirror, random.Random(1)) if r["t"] == "K")],
        )
    if "languages" in wanted:
        write_rows(
            args.out / "languages.jsonl.xz",
            [*language_rows(args.mirror, rng), *(r for r in tldr_rows(args.mirror, random.Random(1)) if r["t"] == "M")],
        )


if __name__ == "__main__":
    main()
