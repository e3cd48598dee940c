"""What is in the database: the tables, their version, and the statements over them."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, LiteralString

from psycopg import Connection, errors, sql

from memorizz.errors import ConfigurationError

SCHEMA_VERSION: Final = 1

_MAX_NAME_BYTES: Final = 63
_TABLES: Final = ("records", "schema_version")

# The C collation: an index over it does not break when the server's libraries learn to sort anew.
_MAKE: Final = """
CREATE TABLE {schema}.records (
    position   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    store      text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    natural_id text COLLATE "C",
    memory_id  text COLLATE "C",
    agent_id   text COLLATE "C",
    user_id    text COLLATE "C",
    body       json NOT NULL CHECK (json_typeof(body) = 'object'),
    UNIQUE (store, id)
);
CREATE INDEX records_store ON {schema}.records (store, position);
CREATE INDEX records_natural ON {schema}.records (store, natural_id) WHERE natural_id IS NOT NULL;
CREATE INDEX records_memory ON {schema}.records (memory_id, store) WHERE memory_id IS NOT NULL;
CREATE INDEX records_agent ON {schema}.records (agent_id, store) WHERE agent_id IS NOT NULL;
CREATE INDEX records_user ON {schema}.records (user_id, store) WHERE user_id IS NOT NULL;
CREATE TABLE {schema}.schema_version (version integer NOT NULL);
INSERT INTO {schema}.schema_version VALUES ({version});
"""

_INSERT: Final = """
INSERT INTO {schema}.records (id, natural_id, memory_id, agent_id, user_id, body, store)
SELECT id, natural_id, memory_id, agent_id, user_id, body::json, %s::text
FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[]) WITH ORDINALITY
    AS given(id, natural_id, memory_id, agent_id, user_id, body, place)
ORDER BY place
"""
_QUERIES: Final = {
    "get": "SELECT body::text FROM {schema}.records WHERE store = %s AND id = %s",
    "find_natural": """
        SELECT natural_id, id FROM {schema}.records WHERE store = %s AND natural_id = ANY(%s::text[]) ORDER BY position
    """,
    "find_physical": "SELECT id FROM {schema}.records WHERE store = %s AND id = ANY(%s::text[])",
    "count": "SELECT count(*) FROM {schema}.records WHERE store = %s",
    "page": """
        SELECT position, id, body::text FROM {schema}.records WHERE store = %s AND position > %s
        ORDER BY position LIMIT %s
    """,
    "insert": _INSERT,
    "replace": f"""{_INSERT}
        ON CONFLICT (store, id) DO UPDATE SET natural_id = excluded.natural_id, memory_id = excluded.memory_id,
            agent_id = excluded.agent_id, user_id = excluded.user_id, body = excluded.body
    """,
    "delete": "DELETE FROM {schema}.records WHERE store = %s AND id = ANY(%s::text[])",
}

# A policy for each role: several of them would add up to what any of them allows.
_RESTRICT: Final = """
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT ON {schema}.schema_version TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.records TO {role};
ALTER TABLE {schema}.records ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS {role} ON {schema}.records;
CREATE POLICY {role} ON {schema}.records TO {role} USING (user_id = {user}) WITH CHECK (user_id = {user});
"""
_SESSION_USER: Final = "nullif((SELECT current_setting('memorizz.user_id', true)), '')"


class Schema:
    """One schema of a database.

    Raises:
        ConfigurationError: It cannot be the name of one.
    """

    def __init__(self, name: str) -> None:
        try:
            size = len(name.encode())
        except UnicodeEncodeError:
            size = 0
        if not 0 < size <= _MAX_NAME_BYTES or "\0" in name:
            # The server would cut a longer one off, without a word.
            raise ConfigurationError(f"the schema must be a name of 1 to {_MAX_NAME_BYTES} bytes (got {name!r})")
        self.name = name
        self._identifier = sql.Identifier(name)
        # Those have parameters, which begin with a percent sign too.
        escaped = sql.SQL(self._identifier.as_string(None).replace("%", "%%"))
        self.queries = {key: sql.SQL(text).format(schema=escaped).as_bytes(None) for key, text in _QUERIES.items()}
        # Of the database, for each schema another: its writers wait for one another, whatever program they are.
        number = int.from_bytes(sha256(f"memorizz:{name}".encode()).digest()[:8], signed=True)
        self.lock = self._composed("SELECT pg_advisory_xact_lock({number})", number=sql.Literal(number))
        self._version = self._composed("SELECT version FROM {schema}.schema_version")

    def check(self, connection: Connection[Any]) -> bool:
        """Whether the tables are there.

        Raises:
            ConfigurationError: They are not ours, or a newer version's.
        """
        try:
            rows = connection.execute(self._version).fetchall()
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            return False
        except errors.UndefinedColumn:
            rows = []
        if len(rows) != 1 or not isinstance(rows[0][0], int):
            raise ConfigurationError(f"{self._it} is not a memory of this program; it was left as it is")
        if rows[0][0] > SCHEMA_VERSION:
            raise ConfigurationError(
                f"{self._it} has version {rows[0][0]}, and this program knows up to {SCHEMA_VERSION}; "
                f"it was left as it is"
            )
        return True

    def make(self, connection: Connection[Any]) -> None:
        """Make the tables where they are not there yet, and the schema around them.

        Raises:
            ConfigurationError: The schema holds a table of the same name that is not ours.
        """
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise ConfigurationError(f"the database keeps text as {encoding}; it must be one of UTF8")
        with connection.transaction():
            # Several programs may be about to do this.
            connection.execute(self.lock)
            found = connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)"
                " AND relname = ANY(%s)",
                (self.name, list(_TABLES)),
            ).fetchall()
            if ("schema_version",) in found:
                return
            if found:
                raise ConfigurationError(f"{self._it} holds a table records of another program; it was left as it is")
            # IF NOT EXISTS would want the right to make one also where it is there.
            there = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (self.name,)).fetchone()
            if there is None:
                connection.execute(self._composed("CREATE SCHEMA {schema}"))
            connection.execute(self._composed(_MAKE, version=sql.Literal(SCHEMA_VERSION)))

    def restriction(self, role: str, user_id: str | None) -> bytes:
        """The statements that restrict a role to a user, or to the one of its session."""
        user = sql.SQL(_SESSION_USER) if user_id is None else sql.Literal(user_id)
        return self._composed(_RESTRICT, role=sql.Identifier(role), user=user)

    @property
    def _it(self) -> str:
        return f"the schema {self.name!r} of the database"

    def _composed(self, text: LiteralString, **parts: sql.Composable) -> bytes:
        return sql.SQL(text).format(schema=self._identifier, **parts).as_bytes(None)
