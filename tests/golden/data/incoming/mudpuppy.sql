CREATE TABLE memory_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL, content_hash TEXT UNIQUE NOT NULL,
    entry_type TEXT NOT NULL DEFAULT 'fact', source TEXT DEFAULT 'manual', context TEXT, confidence REAL DEFAULT 1.0,
    importance INTEGER DEFAULT 5, tags TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    expires_at INTEGER, access_count INTEGER DEFAULT 0, last_accessed_at INTEGER
);
CREATE VIRTUAL TABLE memory_fts USING fts5(content, context, tags, content='memory_entries', content_rowid='id');
CREATE TABLE memory_access_log (
    id INTEGER PRIMARY KEY AUTOINCREMENT, memory_id INTEGER NOT NULL, accessed_at INTEGER NOT NULL,
    access_type TEXT NOT NULL, relevance_score REAL, query_text TEXT
);
INSERT INTO memory_entries (id, content, content_hash, created_at, updated_at, entry_type, source, context, confidence, importance, tags, expires_at, access_count, last_accessed_at) VALUES (3, 'The user prefers dark mode.

  Always.', 'hash 3', 1772366400000, 1772452800000, 'preference', 'chat', 'settings page', 0.8, 9, '["ui", "theme"]', 9548366400000, 4, 1772539200000);
INSERT INTO memory_entries (id, content, content_hash, created_at, updated_at, entry_type, expires_at) VALUES (5, 'Rent is due on the first.', 'hash 5', 1772366400000, 1772366400000, 'task', 1900000000);
INSERT INTO memory_entries (id, content, content_hash, created_at, updated_at, entry_type, expires_at, source, confidence, importance) VALUES (6, 'It rained.', 'hash 6', 1772366400000, 1772366400000, 'event', 1772452800000, NULL, NULL, NULL);
INSERT INTO memory_entries (id, content, content_hash, created_at, updated_at, source, tags) VALUES (7, '# Notes

first draft', 'hash 7', 1772366400000, 1772366400000, 'file-index', '["notes.md"]');
INSERT INTO memory_entries (id, content, content_hash, created_at, updated_at, source, tags) VALUES (8, '# Notes

second draft', 'hash 8', 1772452800000, 1772366400000, 'file-index', '["notes.md"]');
INSERT INTO memory_entries (id, content, content_hash, created_at, updated_at) VALUES (9, 'IT RAINED.', 'hash 9', 1772366400000, 1772366400000);
INSERT INTO memory_entries (id, content, content_hash, created_at, updated_at) VALUES (12, 'The user prefers dark mode. Always.', 'hash 12', 1772366400000, 1772366400000);
INSERT INTO memory_entries (id, content, content_hash, created_at, updated_at) VALUES (13, '', 'hash 13', 1772366400000, 1772366400000);
INSERT INTO memory_access_log (memory_id, accessed_at, access_type) VALUES (3, 1772366400000, 'get');
