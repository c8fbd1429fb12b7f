"""The hub's tables for search: an index of words, made from the events, that can always be made anew.

Words are kept twice, for their channel and for their workspace, each with the number of that scope before it: so a
search in one channel reads nothing of the others, however many there are.
"""

from sqlalchemy import Column, Index, Integer, PrimaryKeyConstraint, Table, Text, UniqueConstraint, text

from relay_receiver.hub import tables_people

metadata = tables_people.metadata

CHANGEABLE = text("search_item.kind <> 'message'")
"""The condition of a partial index, in its own words: a bound value in its place would not find the index."""

INDEX = (
    "CREATE VIRTUAL TABLE search USING fts5(here, everywhere, content='', columnsize=0, "
    "tokenize=\"ascii tokenchars ':'\")"
)
"""The index itself: it keeps no text. What is put into it is folded and cut into words already."""

search_item = Table(
    "search_item",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("channel", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("ref", Text, nullable=False),
    Column("words", Text),
)
"""What a row of the index is, the newest with the highest number. `words` of what can change: the index needs them to
forget it."""
Index(
    "ix_search_item_ref",
    search_item.c.kind,
    search_item.c.ref,
    unique=True,
    sqlite_where=text("kind <> 'message'"),
    postgresql_where=text("kind <> 'message'"),
)

search_scope = Table(
    "search_scope",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("ref", Text, nullable=False),
    UniqueConstraint("ref"),
)
"""The number of a channel or workspace in the index."""

search_word = Table(
    "search_word",
    metadata,
    Column("scope", Integer, nullable=False),
    Column("word", Text, nullable=False),
    PrimaryKeyConstraint("scope", "word"),
    sqlite_with_rowid=False,
)
"""The words of a scope: what a beginning may be completed to."""

search_place = Table(
    "search_place",
    metadata,
    Column("workspace", Text, primary_key=True),
    Column("number", Integer, nullable=False),
)
"""Up to which event a workspace is in the index."""
