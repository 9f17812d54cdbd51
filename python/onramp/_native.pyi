from typing import Any

__version__: str

class Table:
    """A table of a result. ``pyarrow.table(t)``, ``polars.DataFrame(t)``, ``pandas.DataFrame.from_arrow(t)`` and whatever else
    knows Arrow's PyCapsule interface take it as it is."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
    @property
    def units(self) -> dict[str, str]:
        """Units of the columns that have one; also ``unit`` in each field's metadata, beside ``help``."""
    def __len__(self) -> int:
        """Number of rows."""
    def __getitem__(self, name: str) -> list[Any]:
        """Values of a column; ``None`` stands for none. Needs no other library."""
    def to_arrow(self) -> Any:
        """As a ``pyarrow.Table``."""
    def to_pandas(self) -> Any:
        """As a ``pandas.DataFrame``, by way of pyarrow."""
    def to_polars(self) -> Any:
        """As a ``polars.DataFrame``."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...

_Made = tuple[str, dict[str, Table]]

def simulate(words: list[str], samples: bool) -> _Made: ...
def sweep(words: list[str], library: str) -> _Made: ...
def replay(options: dict[str, Any]) -> _Made: ...
def read(path: str) -> tuple[str, _Made, list[str], list[str]]: ...
def table(path: str, name: str) -> tuple[Table, list[str]]: ...
def options(verb: str) -> list[str]: ...
