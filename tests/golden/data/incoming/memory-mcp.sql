CREATE TABLE memories (
    id TEXT PRIMARY KEY, content TEXT NOT NULL, type TEXT NOT NULL, importance REAL NOT NULL, embedding BLOB,
    created_at INTEGER NOT NULL, last_accessed INTEGER NOT NULL, expires_at INTEGER,
    metadata TEXT NOT NULL DEFAULT '{}', is_deleted INTEGER NOT NULL DEFAULT 0, summary TEXT,
    access_count INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE entities (
    id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL, metadata TEXT NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL
);
CREATE TABLE memory_entities (memory_id TEXT, entity_id TEXT, created_at INTEGER, PRIMARY KEY (memory_id, entity_id));
CREATE TABLE provenance (
    id TEXT PRIMARY KEY, memory_id TEXT NOT NULL, operation TEXT NOT NULL, timestamp INTEGER NOT NULL,
    source TEXT NOT NULL, context TEXT, user_id TEXT, changes TEXT
);
CREATE VIRTUAL TABLE memories_fts USING fts5(memory_id UNINDEXED, content, summary, tokenize = 'porter unicode61');
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL);
CREATE VIEW v_active_memories AS SELECT * FROM memories WHERE is_deleted = 0;
INSERT INTO memories (id, content, type, importance, created_at, last_accessed, summary, access_count, metadata, expires_at) VALUES ('mem_a', 'Ada leads the parser team.', 'relationship', 7.5, 1772366400000, 1773144000000, 'Ada leads it.', 12, '{"tags": ["team", "people"], "ticket": {"no": 7}}', 9548366400000);
INSERT INTO memories (id, content, type, importance, created_at, last_accessed, is_deleted) VALUES ('mem_b', 'Builds run on Fridays.', 'fact', 0.0, 1772366400000, 1772366400000, 1);
INSERT INTO memories (id, content, type, importance, created_at, last_accessed, expires_at) VALUES ('mem_c', 'The old port was 8080.', 'fact', 5.0, 1772366400000, 1772366400000, 1772280000000);
INSERT INTO memories (id, content, type, importance, created_at, last_accessed) VALUES ('mem_d', 'ada leads the parser team.', 'fact', 5.0, 1772366400000, 1772366400000);
INSERT INTO memories (id, content, type, importance, created_at, last_accessed) VALUES ('mem_e', 'Ada  leads the parser team.', 'fact', 5.0, 1772366400000, 1772366400000);
INSERT INTO memories (id, content, type, importance, created_at, last_accessed) VALUES ('mem_f', ' ', 'fact', 5.0, 1772366400000, 1772366400000);
INSERT INTO entities (id, name, type, metadata, created_at) VALUES ('ent_1', 'Ada', 'person', '{"role": "lead"}', 1772366400000);
INSERT INTO entities (id, name, type, created_at) VALUES ('ent_2', 'Parser', 'other', 1772366400000);
INSERT INTO entities (id, name, type, created_at) VALUES ('ent_3', 'Nobody', 'person', 1772366400000);
INSERT INTO memory_entities (memory_id, entity_id, created_at) VALUES ('mem_a', 'ent_1', 1772366400000);
INSERT INTO memory_entities (memory_id, entity_id, created_at) VALUES ('mem_a', 'ent_2', 1772366400000);
INSERT INTO memory_entities (memory_id, entity_id, created_at) VALUES ('mem_a', 'ent_gone', 1772366400000);
INSERT INTO provenance (id, memory_id, operation, timestamp, source, context, user_id, changes) VALUES ('prov_1', 'mem_a', 'create', 1772366400000, 'chat', 'from the stand-up', 'eve', NULL);
INSERT INTO provenance (id, memory_id, operation, timestamp, source, context, user_id, changes) VALUES ('prov_2', 'mem_a', 'update', 1772452800000, 'user', 'Updated 3 field(s)', NULL, '{"content": {"from": "Bob leads the parser team.", "to": "Ada leads the parser team."}, "summary": {"from": "Bob leads it.", "to": "Ada leads it."}, "importance": {"from": 4, "to": 7.5}}');
INSERT INTO provenance (id, memory_id, operation, timestamp, source) VALUES ('prov_3', 'mem_a', 'access', 1773144000000, 'recall');
INSERT INTO provenance (id, memory_id, operation, timestamp, source) VALUES ('prov_4', 'mem_b', 'create', 1772366400000, 'user');
INSERT INTO provenance (id, memory_id, operation, timestamp, source, context, changes) VALUES ('prov_5', 'mem_b', 'delete', 1772539200000, 'user', 'it moved to Mondays', '{"soft_delete": true}');
