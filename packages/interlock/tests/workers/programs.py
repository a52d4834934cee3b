"""The server that the worker tests start, once or several times; what its tools did can be read in
a file of marks."""

from __future__ import annotations

# Arguments: the folder for marks, then the options of `server.run("http", ...)` as JSON.
WORKER = """
import asyncio, contextlib, json, os, pathlib, signal, sys, time, typing
from interlock import Context, HttpResponse, Server, WorkerLimits
from interlock.transport.http.limits import Limits, Rate

folder = pathlib.Path(sys.argv[1])
options = json.loads(sys.argv[2])
if options.pop("guarded", False):
    from tests.transport.doorman import Doorman
    options["guard"] = Doorman()
if "rate" in options:
    options["limits"] = Limits(rate=Rate(*options.pop("rate")))
if "worker_limits" in options:
    options["worker_limits"] = WorkerLimits(**options["worker_limits"])

if "die" in options:  # the process kills itself at the n-th write of a record
    from interlock.store import open_store
    left, when = options.pop("die")
    options["store"] = open_store(options["store"])
    swap = options["store"].records.swap

    async def dying(*args, **more):
        global left
        left -= 1
        if left == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        version = await swap(*args, **more)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return version

    options["store"].records.swap = dying

@contextlib.asynccontextmanager
async def life(server):
    trip = folder / "trip"  # while this file is there no server starts
    if trip.exists():
        mark("stumbled")
        raise RuntimeError("tripped over a wire")
    mark("entered")
    yield
    mark("left")

server = Server("worker", lifespan=life)

def mark(what):
    with open(folder / "marks", "a") as file:
        file.write(f"{os.getpid()} {what}\\n")

@server.tool(annotations=None)
async def pid() -> int:
    return os.getpid()

@server.tool
async def parent() -> int:
    return os.getppid()

@server.tool
async def add_up(ctx: Context) -> str:
    return f"{os.getpid()} {await ctx.session_state.update('calls', lambda n: n + 1, 0)}"

@server.tool
async def ask(question: str, ctx: Context) -> str:
    mark(f"asks {question}")
    answer = await ctx.elicit(question, int)
    return f"{os.getpid()} {answer}"

@server.tool
async def ask_all(ctx: Context) -> list[str]:
    answer = await ctx.elicit("how many?", int)
    said = await ctx.sample("say something")
    roots = await ctx.roots()
    return [str(answer), said.content.text, str(roots[0].uri)]

@server.tool
async def pay(name: str, ctx: Context) -> str:
    async def take_money():
        mark(f"{name} paid")
        return "receipt"
    first = await ctx.elicit("how much?", int)
    receipt = await ctx.once("pay", take_money)
    second = await ctx.elicit("sure?", int)
    return f"{first} {second} {receipt} {os.getpid()}"

@server.tool
async def act(name: str, ctx: Context) -> str:
    if not await ctx.confirm(f"{name}?"):
        return "no"
    mark(f"acts {name}")
    await asyncio.sleep(0.01)  # time for a kill to come between the action and its outcome
    return f"did {name}"

@server.tool
async def count(to: int, ctx: Context) -> int:
    for n in range(1, to + 1):
        ctx.progress(n, to)
        await ctx.drain()
    return to

@server.tool
async def steps(name: str, to: int, ctx: Context) -> str:
    "Tells a step whenever the file NAME.N is there."
    for n in range(1, to + 1):
        while not (folder / f"{name}.{n}").exists():
            await asyncio.sleep(0.005)
        if (folder / f"{name}.{n}").read_text() == "disconnect":
            mark(f"{name} lets go {await ctx.disconnect(retry_ms=10)}")
        ctx.log.warning(f"{name} {n}")
    return f"{name} done"

@server.tool
async def speak(ctx: Context) -> int:
    for level in ("debug", "info", "warning", "error"):
        ctx.log.write(level, level)
    return os.getpid()

@server.tool
async def hang(name: str, ctx: Context) -> str:
    mark(f"{name} hangs")
    ctx.progress(1)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        mark(f"{name} was cancelled")
        raise
    return "never"

@server.tool
async def block(name: str) -> int:
    "Blocks the event loop until the file NAME is there."
    mark(f"{name} blocks")
    while not (folder / name).exists():
        time.sleep(0.01)
    return os.getpid()

@server.tool
async def touch(n: int, ctx: Context) -> int:
    ctx.updated(f"thing://{n}")
    return os.getpid()

@server.tool
async def grow() -> int:
    server.changed("tools")
    return os.getpid()

if "guard" in options:
    @server.tool(scopes=["secrets"])
    async def secret(ctx: Context) -> str:
        return f"{ctx.principal.subject} {os.getpid()}"

@server.resource("thing://{n}")
async def thing(n: int) -> str:
    return str(n)

@server.route("/pid")
async def own_pid(scope, receive, send):
    await HttpResponse(str(os.getpid()))(scope, receive, send)

print("starting", flush=True)
server.run("http", **options, on_ready=lambda address: print("ready", address[1], flush=True))
"""
