-- A mark of each write, stored with it: whether a commit is stored that was not answered. See `commit_marks`.
CREATE TABLE commits (
    id    text COLLATE "C" PRIMARY KEY,
    login text COLLATE "C" NOT NULL DEFAULT current_user::text,
    at    timestamptz NOT NULL DEFAULT now()
);
