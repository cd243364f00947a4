"""The KV cache in blocks, with vLLM V1's automatic prefix caching.

A block is known by the chain of everything before it: the digest of its parent's digest, its own
tokens and, for the first block, extra keys such as `cache_salt`. Blocks whose last user left
stay hittable until they are reused, the least recently used first.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b


class BlockTable:
    """The blocks of one sequence.

    Attributes:
        blocks: block ids in the order of the tokens they hold.
        hashes: one digest for each full block of the sequence's tokens, computed or not.
        registered: how many leading blocks are hittable.
    """

    __slots__ = ("blocks", "hashes", "registered")

    def __init__(self) -> None:
        self.blocks: list[int] = []
        self.hashes: list[bytes] = []
        self.registered = 0

    def extend_hashes(self, tokens: array[int], block_size: int, salt: str = "") -> None:
        """Hash the full blocks of `tokens` that have no digest yet."""
        parent = self.hashes[-1] if self.hashes else _digest(salt.encode(errors="surrogatepass"))
        for end in range((len(self.hashes) + 1) * block_size, len(tokens) + 1, block_size):
            parent = _digest(parent + tokens[end - block_size : end].tobytes())
            self.hashes.append(parent)


class PrefixCache:
    """A fixed number of blocks, shared between sequences whose tokens begin alike.

    Every block is either free (no sequence uses it; it may still be hittable) or used by one or
    more sequences. vLLM keeps one block for itself; this one does not.

    Args:
        num_blocks: blocks in all.
        block_size: tokens in a block.
        enabled: without it nothing is ever hit.
    """

    def __init__(self, num_blocks: int, block_size: int, *, enabled: bool = True) -> None:
        self.num_blocks = num_blocks
        self.block_size = block_size
        self._enabled = enabled
        self._users = [0] * num_blocks
        self._hash_of: list[bytes | None] = [None] * num_blocks
        # Sequences that compute the same block at the same time each keep their own copy.
        self._copies: dict[bytes, OrderedDict[int, None]] = {}
        # The next block to be reused first.
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(num_blocks))

    @property
    def free_blocks(self) -> int:
        return len(self._free)

    @property
    def used_blocks(self) -> int:
        return self.num_blocks - len(self._free)

    def lookup(self, table: BlockTable, num_tokens: int) -> list[int]:
        """The longest cached prefix, as block ids.

        The last token is always computed, since its output is what samples the next one: of a
        prompt that is cached as a whole, the last block is computed again.
        """
        hits: list[int] = []
        if not self._enabled:
            return hits
        for digest in table.hashes[: (num_tokens - 1) // self.block_size]:
            copies = self._copies.get(digest)
            if not copies:
                break
            hits.append(next(iter(copies)))
        return hits

    def fits(self, num_tokens: int, hits: Iterable[int] = (), held: int = 0) -> bool:
        """Whether `num_tokens` can be held in all, `held` blocks being there already."""
        return self._missing(num_tokens, list(hits), held) <= len(self._free)

    def allocate(self, table: BlockTable, num_tokens: int, hits: Iterable[int] = ()) -> bool:
        """Make `table` long enough for `num_tokens`, starting from `hits`; False changes nothing.

        The blocks that `num_tokens` fills become hittable at once, before they are computed:
        the engine runs steps in order, so whoever hits them reads them later.
        """
        found = list(hits)
        if not self.fits(num_tokens, found, len(table.blocks)):
            return False
        for block in found:
            self._free.pop(block, None)
            self._users[block] += 1
        table.blocks += found
        table.registered += len(found)
        for _ in range(self._blocks_for(num_tokens) - len(table.blocks)):
            table.blocks.append(self._take())
        self._register(table, num_tokens)
        return True

    def release(self, table: BlockTable) -> None:
        """Give all blocks back; the tail is reused before the head, which more prompts share."""
        for block in reversed(table.blocks):
            self._users[block] -= 1
            if not self._users[block]:
                self._free[block] = None
        table.blocks = []
        table.registered = 0

    def reset(self) -> bool:
        """Forget what is cached; False, and nothing happens, while a block is in use."""
        if self.used_blocks:
            return False
        self._copies.clear()
        self._hash_of = [None] * self.num_blocks
        return True

    def _blocks_for(self, num_tokens: int) -> int:
        return -(-num_tokens // self.block_size)

    def _missing(self, num_tokens: int, hits: list[int], held: int) -> int:
        unused_hits = sum(1 for block in hits if not self._users[block])
        return max(0, self._blocks_for(num_tokens) - held - len(hits)) + unused_hits

    def _take(self) -> int:
        block, _ = self._free.popitem(last=False)
        digest = self._hash_of[block]
        if digest is not None:
            copies = self._copies[digest]
            del copies[block]
            if not copies:
                del self._copies[digest]
            self._hash_of[block] = None
        self._users[block] = 1
        return block

    def _register(self, table: BlockTable, num_tokens: int) -> None:
        if not self._enabled:
            return
        full = min(num_tokens // self.block_size, len(table.hashes))
        for index in range(table.registered, full):
            block, digest = table.blocks[index], table.hashes[index]
            self._hash_of[block] = digest
            self._copies.setdefault(digest, OrderedDict())[block] = None
        table.registered = max(table.registered, full)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()
