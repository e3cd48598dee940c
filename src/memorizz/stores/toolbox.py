"""The toolbox: what an agent can call, described as data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeAlias

import msgspec

from memorizz.checks import Text, invalid
from memorizz.stores.base import Store
from memorizz.taxonomy import MemoryType

Reference: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^\w+(\.\w+)*:\w+(\.\w+)*$")]


class Toolbox(Store):
    """Tools by ``tool_id``. A named user reads those of nobody as well.

    A record says how a tool is called, ``name``, ``description``, ``signature``, ``docstring``, ``parameters`` and
    ``input_schema``, and in ``import_reference``, as ``module:name``, where its code is. It never holds the code.
    Whoever saves an agent with tools gets records ``<agent_id>:<tool name>`` here; they follow the agent.
    """

    memory_type = MemoryType.TOOLBOX
    shared_with_users = True
    types: ClassVar = {
        "name": Text,
        "description": str,
        "signature": str,
        "docstring": str,
        "tool_type": Text,
        "parameters": dict[str, Any],
        "required": list[str],
        "input_schema": dict[str, Any] | None,
        "tool_policy": dict[str, Any] | None,
        "aliases": list[str],
        "deprecated_arguments": dict[str, Any],
        "queries": list[str],
        "import_reference": Reference | None,
    }
    defaults: ClassVar = {
        "signature": "",
        "docstring": "",
        "tool_type": "function",
        "input_schema": None,
        "tool_policy": None,
        "aliases": [],
        "deprecated_arguments": {},
        "queries": [],
    }

    def create(
        self,
        name: str,
        description: str = "",
        *,
        parameters: dict[str, Any] | None = None,
        import_reference: str | None = None,
        **fields: Any,
    ) -> str:
        """Keep a tool and return its id.

        Raises:
            InvalidRecord: A field breaks its rule.
            RecordExists: Its ``tool_id`` is taken.
        """
        described = {"name": name, "description": description, "parameters": parameters or {}}
        return self._create({**described, "import_reference": import_reference, **fields})

    def register(self, function: Callable[..., Any], **fields: Any) -> str:
        """Keep the description of a function of an importable module, and return the tool's id.

        Raises:
            InvalidRecord: The function cannot be found again by its module and name, or a field breaks its rule.
        """
        module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
        if not module or module == "__main__" or not name or "<" in name:
            wanted = "defined by name in an importable module"
            raise invalid(self.memory_type, name, "import_reference", wanted, f"{module}:{name}")
        text = inspect.getdoc(function) or ""
        derived = {
            "name": function.__name__,
            "description": text.partition("\n")[0],
            "docstring": text,
            "signature": str(inspect.signature(function)),
            "import_reference": f"{module}:{name}",
        }
        return self.create(**{**derived, **fields})
