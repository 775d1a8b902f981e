"""Puts programs on GPUs: each where it leaves the least room, if what happens on that GPU is fine for all who are there."""
import collections


def place(programs, assumed, is_fine):
    """How many GPUs have which mix (a sorted tuple of kinds). `is_fine(mix)` is asked of mixes of two programs and more: alone, each is."""
    mixes = collections.Counter()
    # The largest first: the others fill what is left.
    for kind in sorted(programs, key=lambda kind: (kind.memory, kind.load(assumed), kind), reverse=True):
        left = programs[kind]
        while left > 0:
            mix = _best(mixes, kind, assumed, is_fine)
            moved = 1 if mix is None else min(left, mixes[mix])
            if mix is not None:
                mixes[mix] -= moved
                if not mixes[mix]:
                    del mixes[mix]
            mixes[tuple(sorted((mix or ()) + (kind,)))] += moved
            left -= moved
    return mixes


def _best(mixes, kind, assumed, is_fine):
    """The fullest mix that can take one more of this kind. None: there is none."""
    rooms = []
    for mix in mixes:
        memory = sum(other.memory for other in mix) + kind.memory
        if memory <= 1 + 1e-9 and len(mix) < assumed.most_on_gpu:
            rooms.append((memory, sum(other.load(assumed) for other in mix), mix))
    for _, _, mix in sorted(rooms, reverse=True):
        if is_fine(tuple(sorted(mix + (kind,)))):
            return mix
    return None


def whole(programs):
    return collections.Counter({(kind,): count for kind, count in programs.items()})
