"""Runs the reference of the bound at drawn points, one JSON array a line: prints kb/s.

usage: reference.py PATH_OF_THE_REFERENCE < POINTS

The reference solves its assignments with numpy and scipy. Where they are missing, the function
`lp` below takes the place of its own: it asks the reference for each gap, and solves by
shortest paths.
"""
import importlib.util
import json
import sys
import types

try:
    import numpy
    import scipy.optimize
except ImportError:
    numpy = None
    for name in ("numpy", "scipy", "scipy.optimize"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["scipy.optimize"].linprog = None

spec = importlib.util.spec_from_file_location("reference", sys.argv[1])
reference = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reference)
known = {}


def lp(kinds, demand, profile, multi):
    """Least sum of gaps; each exchange of a kind has one successor and one predecessor."""
    size = len(kinds)
    gaps = [[reference.gap(profile, a, b, multi) for b in kinds] for a in kinds]
    key = (str(gaps), str(demand))
    if key in known:
        return known[key], None, None
    source, sink = 2 * size, 2 * size + 1
    arcs = []

    def add(start, end, room, cost):
        arcs.append([start, end, room, cost])
        arcs.append([end, start, 0.0, -cost])

    for a in range(size):
        add(source, a, float(demand[a]), 0.0)
        add(size + a, sink, float(demand[a]), 0.0)
        for b in range(size):
            add(a, size + b, float("inf"), gaps[a][b])
    total = 0.0
    while True:
        best = {source: (0.0, None)}
        changed = True
        while changed:
            changed = False
            for number, (start, end, room, cost) in enumerate(arcs):
                if room > 1e-9 and start in best:
                    length = best[start][0] + cost
                    if end not in best or length < best[end][0] - 1e-7:
                        best[end] = (length, number)
                        changed = True
        if sink not in best:
            break
        path, at = [], sink
        while at != source:
            path.append(best[at][1])
            at = arcs[path[-1]][0]
        flow = min(arcs[number][2] for number in path)
        for number in path:
            arcs[number][2] -= flow
            arcs[number ^ 1][2] += flow
        total += flow * best[sink][0]
    known[key] = total
    return total, None, None


if numpy is None:
    reference.lp = lp
for line in sys.stdin:
    radio, hops, mss, tcphc, acks, cit, multi, be = json.loads(line)
    profile = reference.P("drawn", *radio)
    print(reference.bound(profile, hops, mss, tcphc, acks, cit, multi, be))
