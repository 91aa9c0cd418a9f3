"""How PostgreSQL spells the SQL that the engines share."""

from mindex.clock import DAY_MS
from mindex.store.engine_parts import Dialect, glob_expression

_WORDS = {
    "key": "id",
    "record": "?",
    "order": "seq",
    "document": "d.collection = r.owner AND d.id = r.document",
    "collection": "c.name = d.collection",
    "chunk": "owner = ? AND id = ?",
    "differs": "IS DISTINCT FROM",
    "beside": "{}.owner = a.owner",
    "unchanged": "NOT EXISTS (SELECT 1 FROM history h WHERE h.record = r.id AND h.at > ?)",
    "glob": "~ ?",
    "ending": "right({}, length(?)) = ?",
    "vector": "{}.owner = r.owner AND {}.record = r.id",
    "first": "{}.piece = 0",
    "session": "{}.fields ->> 'session_id'",
    "property": "fields ->> ?",
    "among": "= ANY(?)",
    "checksum": "",
    "contains": "ILIKE ?",
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
