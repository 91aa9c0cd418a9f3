"""Distribution over the machines of a Citus cluster: rows of one agent or collection are on one machine."""

from mindex.datatypes.administration import Distribution
from mindex.errors import StoreError
from mindex_postgres.connection import Database
from mindex_postgres.transaction import Transaction

# Table → the column that says on which machine a row is. The first decides, the others follow it.
DISTRIBUTED = {"records": "owner", "words": "owner", "terms": "owner", "vectors": "owner", "documents": "collection"}
# Whole on every machine: what is small, or joined with records of any machine.
_REFERENCE = (
    "collections",
    "spaces",
    "history",
    "links",
    "accesses",
    "extractions",
    "synced_changes",
    "program_numbers",
)
# Citus can keep a value unique on one machine only, so these become indexes without that. Ids are random or hashes of
# the collection and the path, and numbers are given one after the other: they do not meet.
_UNIQUE = """
ALTER TABLE records DROP CONSTRAINT records_id_key;
CREATE INDEX records_by_id ON records (id);
DROP INDEX records_by_number;
CREATE UNIQUE INDEX records_by_number ON records (owner, number) WHERE number IS NOT NULL;
ALTER TABLE documents DROP CONSTRAINT documents_id_key;
CREATE INDEX documents_by_id ON documents (id)
"""
# With references to tables that are on every machine, a transaction may use one connection per machine only.
_REFERENCES = """
ALTER TABLE documents DROP CONSTRAINT documents_collection_fkey;
ALTER TABLE vectors DROP CONSTRAINT vectors_space_fkey
"""
_IS_DISTRIBUTED = "SELECT 1 FROM citus_tables WHERE table_name = 'records'::regclass"


def distribute(database: Database) -> Distribution:
    """Spread the tables. Raises StoreError where Citus is not installed, or where it was done before."""
    with database.read() as transaction:
        if not transaction.value("SELECT 1 FROM pg_extension WHERE extname = 'citus'"):
            raise StoreError(
                f"{database.place} has no Citus",
                "install Citus on the server, run `CREATE EXTENSION citus;` in this database, and add its workers",
            )
        if transaction.value(_IS_DISTRIBUTED):
            raise StoreError(f"the tables of {database.place} are distributed already", "there is nothing to do")
    return database.write(_distribute, long=True)


def _distribute(transaction: Transaction) -> Distribution:
    _run(transaction, _UNIQUE + ";" + _REFERENCES)
    for table in _REFERENCE:
        transaction.run("SELECT create_reference_table(%s)", table)
    first, *_ = DISTRIBUTED
    for table, column in DISTRIBUTED.items():
        beside = "" if table == first else f", colocate_with => '{first}'"
        transaction.run(f"SELECT create_distributed_table('{table}', '{column}'{beside})")
    machines = transaction.value("SELECT count(*) FROM pg_dist_node WHERE shouldhaveshards AND noderole = 'primary'")
    return Distribution(tuple(DISTRIBUTED), _REFERENCE, int(machines))


def _run(transaction: Transaction, statements: str) -> None:
    for statement in statements.split(";"):
        transaction.run(statement)
