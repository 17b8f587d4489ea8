"""A program that is an all-reduce, a reduce-scatter, or a broadcast, and next to nothing else: what scripts/accuracy and scripts/scale run."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent


def write(folder, topology, chips, size, adder=None, scattered=False, broadcast=False):
    """Of the 32 rows of a matmul whose contraction is a tile a chip: what each chip contributes is one page of `size` bytes.

    topology: ring, full-mesh, switch (half of a hop's latency to it, half from it), two nodes or nodes of N (full meshes, joined chip
    by chip), nodes of N by switches (joined by a switch for each place). adder: multiply-accumulates of int32 a cycle
    and PCU, where another count than the target's is wanted. scattered: each chip keeps rows of its own. broadcast: the first chip alone
    multiplies, and sends the result to the others. Returns what compile is asked for but for the algorithm."""
    target = (ROOT / "tests" / "accuracy" / "collectives.toml").read_text(encoding="utf-8")
    nodes = "nodes" in topology
    node = (chips // 2 if topology == "two nodes" else int(topology.split()[2])) if nodes else chips
    for key, value in ("chips", chips), ("node_chips", node), ("int32", adder):
        if value is not None:
            target = re.sub(rf"(?m)^({key} +)= {{ value = (16|267)\b", rf"\1= {{ value = {value}", target)
    target = re.sub(r"(?m)^((?:node_)?chips .*range = \[1, )(\d+)", lambda m: m[1] + str(max(int(m[2]), chips)), target)
    if topology != "ring":
        target = target.replace('shape        = "ring"', 'shape        = "full_mesh"')
    switched = re.sub(r"(?m)^(latency_ns +)= { value = (\d+)", lambda m: f"{m[1]}= {{ value = {int(m[2]) // 2}", target)
    switched = switched.replace('shape        = "full_mesh"', 'shape        = "switch"\n' + "\n".join(
        f'{key} = {{ value = {value}, published = "a switch that adds nothing of its own" }}'
        for key, value in (("switch_latency_ns", 0), ("buffer_bytes", 1 << 40))))
    switched = switched[switched.index("[[links]]"):]
    if nodes:
        between = switched if topology.endswith("by switches") else target[target.index("[[links]]"):]
        target += between.replace('joins        = "node"', 'joins        = "counterparts"')
    elif topology == "switch":
        target = target[:target.index("[[links]]")] + switched
    columns = size // 128
    machine, workload = pathlib.Path(folder, "machine.toml"), pathlib.Path(folder, "all-reduce.toml")
    machine.write_text(target, encoding="utf-8")
    workload.write_text(f'''name = "all-reduce"
[tensors.a]
role  = "input"
shape = [32, {32 * chips}]
dtype = "int8"
fill  = "zero"
[tensors.b]
role  = "weight"
shape = [{32 * chips}, {columns}]
dtype = "int8"
fill  = "zero"
[tensors.y]
role  = "output"
dtype = "int32"
[[ops]]
name = "sum"
kind = "matmul"
in   = ["a", "b"]
out  = "y"
{"alone = [0, 1]" if broadcast else f"scattered = {str(scattered).lower()}"}
[schedule.sum]
sites   = 1
block_n = {columns // 32}
page_k  = 1
depth   = 1
''', encoding="utf-8")
    return [str(workload), "--target", str(machine), "--chips", str(chips), "--shard", "row"]
