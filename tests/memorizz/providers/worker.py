"""Another process at the same records: ``python -m ... '["sqlite", {...}]' COMMAND ARGUMENT...``."""

from __future__ import annotations

import json
import sys
from itertools import count

from memorizz.taxonomy import MemoryType
from tests.memorizz.providers.opening import opened

STORE = MemoryType.KNOWLEDGE_BASE


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(where: str, command: str, *arguments: str) -> None:
    kind, options = json.loads(where)
    with opened(kind, options) as provider:
        if command == "store":
            ids = [provider.store({"content": f"fact {n}"}, STORE) for n in range(int(arguments[0]))]
            say(json.dumps(ids))
        elif command == "put":
            provider.put(STORE, [(id, {"content": "put"}) for id in arguments], replace=True)
        elif command == "delete":
            provider.delete(STORE, arguments)
        elif command == "check":
            # What this process wrote is all there for it, whatever others do meanwhile.
            for n in range(int(arguments[1])):
                id = f"{arguments[0]}-{n}"
                provider.put(MemoryType.PERSONAS, [(id, {"persona_id": f"natural-{id}"})])
                assert provider.find(MemoryType.PERSONAS, [f"natural-{id}"]) == {f"natural-{id}": id}
                found = [record["_id"] for record in provider.scan(MemoryType.PERSONAS)]
                assert [one for one in found if one.startswith(arguments[0])] == [
                    f"{arguments[0]}-{n}" for n in range(n + 1)
                ]
                assert provider.problems() == []
        elif command == "reopen":
            for _ in range(int(arguments[0])):
                opened(kind, options).close()
        elif command == "put-forever":
            size = int(arguments[0])
            for batch in count():
                ids = [f"{arguments[1]}-{batch}-{n}" for n in range(size)]
                # The second half are records that are there already: they are replaced by a longer text.
                rows = [(id, {"content": "x" * 300}) for id in ids]
                provider.put(
                    STORE, [*rows, *((f"old-{n}", {"content": f"{batch}" * 300}) for n in range(size))], replace=True
                )
                say(json.dumps(ids))
        elif command == "delete-forever":
            for id in arguments:
                provider.delete(STORE, [id])
                say(id)
        elif command == "increment":
            for _ in range(int(arguments[1])):
                while True:
                    revision = json.loads(provider.get(MemoryType.SHARED_MEMORY, arguments[0])["content"])["revision"]
                    content = json.dumps({"revision": revision + 1})
                    if provider.compare_and_swap_shared_memory(arguments[0], revision, {"content": content}):
                        break
        elif command == "update":
            for n in range(int(arguments[2])):
                provider.update_by_id(arguments[0], {f"{arguments[1]}-{n}": True}, STORE)
        else:
            raise SystemExit(f"no such command: {command}")


if __name__ == "__main__":
    main(*sys.argv[1:])
