# SPDX-License-Identifier: MIT
"""Whether a history of a key-value store is linearizable (Wing and Gong, 1993; Lowe, 2017).

A history is a list of operations: begin and end in nanoseconds (end None: nobody knows whether it was
executed), what was asked, and what was answered.  Keys are independent, so each is judged alone: the
set of all states that the key may be in is carried from answer to answer, each with the operations
under way that have taken effect in it.
"""
import collections

OK, NOT_FOUND, CONFLICT = 0, 1, 2
Operation = collections.namedtuple(
    "Operation", "client begin end name key value expect status read")


def read_history(path):
    """The lines of assay-vr client --history."""
    operations = []
    with open(path) as lines:
        for line in lines:
            client, begin, end, name, key, value, expect, status, read = line.split()
            operations.append(Operation(client, int(begin), None if end == "-1" else int(end), name,
                                        int(key), int(value), int(expect), int(status), int(read)))
    return operations


def execute(operation, state):
    """(status, what was read, next state); 0 is no key."""
    if operation.name == "get":
        return (OK, state, state) if state else (NOT_FOUND, 0, 0)
    if operation.name == "put":
        return OK, 0, operation.value
    if operation.name == "delete":
        return (OK if state else NOT_FOUND), 0, 0
    if operation.name == "cas":
        if state == operation.expect:
            return OK, 0, operation.value
        return (CONFLICT, state, state) if state else (NOT_FOUND, 0, 0)
    raise ValueError(operation.name)


def key_violation(operations):
    """None, or words about the first answer that no order explains."""
    events = []
    for number, operation in enumerate(operations):
        events.append((operation.begin, 0, number))
        if operation.end is not None:
            events.append((operation.end, 1, number))
    pending = set()
    worlds = {(0, frozenset())}
    for _, is_end, number in sorted(events):
        if not is_end:
            pending.add(number)
            continue
        reached, waiting = set(), list(worlds)
        seen = set(worlds)
        while waiting:
            state, done = waiting.pop()
            if number in done:
                reached.add((state, done - {number}))
                continue
            for other in pending - done:
                operation = operations[other]
                status, read, after = execute(operation, state)
                known = operation.end is not None
                if known and (status != operation.status or read != operation.read):
                    continue
                world = (after, done | {other})
                if world not in seen:
                    seen.add(world)
                    waiting.append(world)
        if not reached:
            return f"no order explains {operations[number]}"
        pending.discard(number)
        worlds = reached
    return None


def violation(operations):
    keys = collections.defaultdict(list)
    for operation in operations:
        keys[operation.key].append(operation)
    for key in sorted(keys):
        words = key_violation(keys[key])
        if words:
            return f"key {key}: {words}"
    return None
