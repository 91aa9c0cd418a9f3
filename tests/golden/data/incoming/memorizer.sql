CREATE TABLE facts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, agent_id TEXT NOT NULL DEFAULT 'main', fact TEXT NOT NULL,
    category TEXT NOT NULL, source TEXT, confidence REAL DEFAULT 1.0, created_at TEXT DEFAULT CURRENT_TIMESTAMP,
    updated_at TEXT, last_accessed_at TEXT
);
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, agent_id TEXT NOT NULL DEFAULT 'main', session_id TEXT, user_message TEXT NOT NULL,
    agent_response TEXT NOT NULL, tags TEXT, created_at TEXT
);
CREATE TABLE profiles (agent_id TEXT PRIMARY KEY, profile_data TEXT NOT NULL, created_at TEXT, updated_at TEXT);
CREATE TABLE profile_history (
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL, profile_data TEXT NOT NULL, changed_at TEXT, change_reason TEXT
);
CREATE TABLE skills (
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL DEFAULT 'main', name TEXT NOT NULL, description TEXT,
    enabled INTEGER DEFAULT 1, trigger_type TEXT NOT NULL, trigger_config TEXT, instructions TEXT NOT NULL,
    required_tools TEXT, max_steps INTEGER DEFAULT 10, notify_on_completion INTEGER DEFAULT 1, last_run_at TEXT,
    last_run_status TEXT, last_run_summary TEXT, created_at TEXT, updated_at TEXT
);
CREATE TABLE contacts (
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL DEFAULT 'main', name TEXT NOT NULL, email TEXT, company TEXT,
    role TEXT, type TEXT DEFAULT 'work', notes TEXT, created_at TEXT, updated_at TEXT
);
CREATE TABLE projects (
    id INTEGER PRIMARY KEY, agent_id TEXT NOT NULL DEFAULT 'main', name TEXT NOT NULL, status TEXT DEFAULT 'active',
    type TEXT DEFAULT 'work', description TEXT, primary_contact_id INTEGER, participants TEXT, company TEXT,
    priority TEXT, created_at TEXT, updated_at TEXT
);
CREATE VIRTUAL TABLE facts_fts USING fts5(fact, content='facts', content_rowid='id', tokenize='porter unicode61');
INSERT INTO facts (id, fact, category, source, confidence, created_at, updated_at, last_accessed_at) VALUES (1, 'Eve prefers tea.', 'preference', 'conv_1', 0.9, '2026-03-01 12:00:00', '2026-03-02 12:00:00', '2026-03-03 12:00:00');
INSERT INTO facts (id, agent_id, fact, category, created_at) VALUES (2, 'work', 'Eve prefers tea.', 'pattern', '2026-03-01 12:00:00');
INSERT INTO facts (id, fact, category, created_at) VALUES (3, 'Eve  prefers tea.', 'preference', '2026-03-01 12:00:00');
INSERT INTO facts (id, fact, category, source, created_at) VALUES (4, 'The sky is blue.', 'weather', 'conv_gone', '2026-03-01 12:00:00');
INSERT INTO facts (id, fact, category, created_at) VALUES (5, '', 'project', '2026-03-01 12:00:00');
INSERT INTO conversations (id, session_id, user_message, agent_response, tags, created_at) VALUES ('conv_1', 's1', 'Tea or coffee?
', 'You said: tea.', '["drinks"]', '2026-03-01 12:00:00');
INSERT INTO conversations (id, session_id, user_message, agent_response, created_at) VALUES ('conv_2', NULL, 'Hello', '', '2026-03-01 12:00:00');
INSERT INTO conversations (id, session_id, user_message, agent_response, created_at) VALUES ('conv_3', 's1', ' ', '', '2026-03-01 12:00:00');
INSERT INTO profiles (agent_id, profile_data, created_at, updated_at) VALUES ('main', '{"user_info": {"name": "Eve"}}', '2026-03-01 12:00:00', '2026-03-05 12:00:00');
INSERT INTO profiles (agent_id, profile_data, created_at) VALUES ('work', '[]', '2026-03-01 12:00:00');
INSERT INTO skills (id, name, description, enabled, trigger_type, trigger_config, instructions, required_tools, max_steps, last_run_at, last_run_status, created_at, updated_at) VALUES (1, 'brief', 'Morning brief', 1, 'cron', '{"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"}', 'Sum up the mail.', '["mail"]', 5, '1772366400000', 'ok', '2026-03-01 12:00:00', '2026-03-01 12:00:00');
INSERT INTO skills (id, name, trigger_type, trigger_config, instructions) VALUES (2, 'odd', 'cron', '{}', 'Wait.');
INSERT INTO skills (id, name, trigger_type, instructions, created_at) VALUES (3, 'mute', 'manual', '', '2026-03-01 12:00:00');
INSERT INTO contacts (id, name, email, company, role, notes, created_at, updated_at) VALUES (1, 'Ada', 'Ada@Example.org', 'ACME', 'lead', 'likes tea', '2026-03-01 12:00:00', '2026-03-01 12:00:00');
INSERT INTO contacts (id, name, email, type, created_at) VALUES (2, 'Bob', 'n/a', 'client', '2026-03-01 12:00:00');
INSERT INTO contacts (id, name, email, created_at) VALUES (3, 'Ada Again', 'ada@example.org', '2026-03-01 12:00:00');
INSERT INTO projects (id, name, status, description, primary_contact_id, participants, priority, created_at, updated_at) VALUES (1, 'Parser', 'paused', 'Rewrite it', 1, '[1, 2, 77]', 'urgent', '2026-03-01 12:00:00', '2026-03-01 12:00:00');
INSERT INTO profile_history (id, agent_id, profile_data, changed_at) VALUES (1, 'main', '{"user_info": {"name": null}}', '2026-03-04 12:00:00');
INSERT INTO profile_history (id, agent_id, profile_data, changed_at, change_reason) VALUES (2, 'main', '{"user_info": {"name": "Eva"}}', '2026-03-05 12:00:00', 'she spelt it');
