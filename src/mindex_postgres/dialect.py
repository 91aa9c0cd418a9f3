"""How PostgreSQL spells the SQL that the engines share."""

from mindex.clock import DAY_MS
from mindex.store.engine_parts import Dialect, glob_expression

_WORDS = {
    "key": "id",
    "record": "%s",
    "place": "{}owner, {}id",
    "order": "seq",
    "document": "d.collection = r.owner AND d.id = r.document",
    "collection": "c.name = d.collection",
    "chunk": "owner = %s AND id = %s",
    "document_key": "collection, id",
    "collection_key": "%s",
    "differs": "IS DISTINCT FROM",
    "beside": "{}.owner = a.owner",
    "unchanged": "NOT EXISTS (SELECT 1 FROM history h WHERE h.record = r.id AND h.at > %s)",
    "glob": "~ %s",
    "ending": "right({}, length(%s)) = %s",
    "vector": "{}.owner = r.owner AND {}.record = r.id",
    "first": "{}.piece = 0",
    "session": "{}.fields ->> 'session_id'",
    "property": "fields ->> %s",
    "among": "= ANY(%s)",
    "checksum": "",
    "seal": "",
    "each": "unnest({}) t (value)",
    "links": "links l",
    "source": "l.source",
    "first_summary": "(array_agg(r.summary ORDER BY r.created_at, r.number))[1]",
    # The first condition is that of the index `records_of_other_programs`: only imported records are looked through.
    "known_as": """(r.fields -> 'foreign_ids') IS NOT NULL AND jsonb_path_exists(
        (r.fields -> 'foreign_ids')::jsonb,
        '$.keyvalue() ? ($program == "" || @.key == $program).value[*] ? (@ == $id)',
        jsonb_build_object('id', wanted.id, 'program', wanted.program), true
    )""",
    "contains": "ILIKE %s",
    "by_code_point": 'COLLATE "C"',
    "unindexed": "{}",
    "greatest": "greatest",
    "place_of": "strpos",
    "day": f"floor({{}} / {DAY_MS}.0)::bigint",
    "cache_key": "kind, key, login",
    "spaces": "spaces",
    "space": "space",
    "description": "description",
}
DIALECT = Dialect(_WORDS, mark="%s", array=list, texts=tuple, glob=lambda pattern: f"^(?:{glob_expression(pattern)})$")
