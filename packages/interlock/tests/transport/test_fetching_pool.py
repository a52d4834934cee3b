"""Kept connections: when one carries the next request, when it is given up, what waits for one, and
that nothing is left behind.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import weakref

import pytest
import uvicorn

from interlock import TimedOut, Unreachable
from interlock.http11.client import HttpFetch
from interlock.http11.fetch import ConnectionLost, Request
from tests.transport.ends import turns
from tests.transport.http_peers import (
    LOOPS,
    Talk,
    always,
    both_loops,
    fetch_for_tests,
    get,
    ok,
    once,
    post,
    serving,
    tidily,
    whole,
)


@both_loops
async def test_one_after_the_other_goes_over_one_connection():
    """And as many at once as there are, last used first, over no more than were needed."""
    async with serving(always(ok())) as peer:
        fetch = fetch_for_tests()
        for _ in range(5):
            await whole(fetch, post(peer.url))
        assert peer.opened == 1
        await asyncio.gather(*(whole(fetch, post(peer.url)) for _ in range(10)))
        assert peer.opened == 10
        for _ in range(5):
            await whole(fetch, post(peer.url))
        assert peer.opened == 10
        await fetch.aclose()
    assert len(peer.requests) == 20


@both_loops
async def test_many_addresses_of_one_place_share_its_connection():
    """Also once there are more of them than are remembered."""
    async with serving(always(ok())) as peer:
        fetch = fetch_for_tests()
        for n in range(600):
            await whole(fetch, get(f"{peer.url}?{n}"))
        await fetch.aclose()
    assert (peer.opened, len(peer.requests)) == (1, 600)


@both_loops
async def test_a_closed_kept_connection_costs_nobody_anything():
    """The server closes after each answer without saying so: the request is sent once more, on a
    new connection.
    """
    async with serving(once(ok())) as peer:
        fetch = fetch_for_tests()
        for _ in range(4):
            assert await whole(fetch, post(peer.url)) == (200, b"{}")
        await fetch.aclose()
    assert (peer.opened, len(peer.requests)) == (4, 4)


@both_loops
async def test_a_kept_connection_that_is_known_to_be_closed_is_not_used():
    """Nothing is sent on it, and its room is free."""
    async with serving(once(ok())) as peer:
        fetch = fetch_for_tests(most_connections=1)
        for _ in range(3):
            assert await whole(fetch, post(peer.url)) == (200, b"{}")
            while fetch._live:
                await turns()
        assert all(not pool.idle and not pool.count for pool in fetch._pools.values())
        await fetch.aclose()
    assert (peer.opened, len(peer.requests)) == (3, 3)


@both_loops
@pytest.mark.parametrize(
    "excess",
    [b"garbage\r\n", ok(b"evil"), b"HTTP/1.1 200 OK\r\n"],
    ids=["garbage", "an answer", "half an answer"],
)
async def test_what_comes_right_behind_an_answer_costs_the_connection(excess: bytes):
    """The server would leave it open; the client does not use it again."""

    async def script(talk: Talk) -> None:
        await talk.read()
        await talk.send(ok(b"first") + excess)
        await talk.gone()

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        for _ in range(2):
            assert await whole(fetch, post(peer.url)) == (200, b"first")
        await fetch.aclose()
    assert peer.opened == 2


@both_loops
async def test_a_connection_that_was_told_to_wait_is_read_again_for_the_next_answer():
    """Its last bytes went over what may wait, and then the body was whole, so that nobody had to
    ask for more.
    """
    size = (1 << 20) + 1

    async def script(talk: Talk) -> None:
        while await talk.read() is not None:
            await talk.send(ok(bytes(size)))

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        for _ in range(3):
            answer = await fetch(post(peer.url))
            while not answer.ended:
                await turns()
            assert await answer.read(size) == bytes(size)
        await fetch.aclose()
    assert peer.opened == 1


@both_loops
async def test_who_gives_up_in_the_moment_of_getting_a_connection_passes_it_on(
    monkeypatch: pytest.MonkeyPatch,
):
    """Otherwise the only one there may be would be lost."""
    async with serving(always(ok())) as peer:
        fetch = fetch_for_tests(most_connections=1)
        pass_on = fetch._pass_on
        asked = [asyncio.create_task(whole(fetch, post(peer.url))) for _ in range(3)]

        def and_give_up(pool, connection):
            pass_on(pool, connection)
            asked[1].cancel()

        monkeypatch.setattr(fetch, "_pass_on", and_give_up)
        found = await asyncio.gather(*asked, return_exceptions=True)
        monkeypatch.undo()
        assert [type(one) for one in found] == [tuple, asyncio.CancelledError, tuple]
        assert await whole(fetch, post(peer.url)) == (200, b"{}")
        await fetch.aclose()
    assert peer.opened == 1


@both_loops
async def test_a_request_that_a_kept_connection_swallowed_is_sent_again_once():
    """The server takes the second request and closes without a byte: it goes out again on a new
    connection, and no third time.
    """
    rude = 0

    async def script(talk: Talk) -> None:
        nonlocal rude
        if talk.number < rude:
            await talk.read()
            return
        await talk.read()
        await talk.send(ok())
        await talk.read()

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        assert await whole(fetch, post(peer.url)) == (200, b"{}")
        assert await whole(fetch, post(peer.url, b"again")) == (200, b"{}")
        assert [seen.body for seen in peer.requests] == [b"{}", b"again", b"again"]
        rude = 10
        with pytest.raises(ConnectionLost, match="before it answered"):
            await fetch(post(peer.url, b"never"))
        assert [seen.body for seen in peer.requests][3:] == [b"never", b"never"]
        await fetch.aclose()


@both_loops
async def test_what_may_not_come_twice_is_not_sent_again():
    """The server may have acted on it before it closed: it is said to be lost, and the server has
    seen it once (`X-08`).
    """

    async def script(talk: Talk) -> None:
        await talk.read()
        await talk.send(ok())
        await talk.read()

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        assert await whole(fetch, post(peer.url, b"one", again=False)) == (200, b"{}")
        with pytest.raises(ConnectionLost, match="before it answered"):
            await fetch(post(peer.url, b"two", again=False))
        assert await whole(fetch, get(peer.url)) == (200, b"{}")
        assert [seen.body for seen in peer.requests] == [b"one", b"two", b""]
        await fetch.aclose()


@both_loops
async def test_what_may_not_come_twice_goes_out_on_a_connection_that_is_there():
    """The server has closed the kept one, and the loop had no turn to tell: that is seen before
    anything is sent on it.
    """
    closed = threading.Event()

    def serve(listener: socket.socket) -> None:
        for _ in range(2):
            one, _ = listener.accept()
            with one:
                while not one.recv(65536).endswith(b"{}"):
                    pass
                one.sendall(ok())
            closed.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        fetch = fetch_for_tests()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        assert await whole(fetch, post(url, again=False)) == (200, b"{}")
        closed.wait()  # the loop stands still meanwhile, as it does under load
        assert await whole(fetch, post(url, again=False)) == (200, b"{}")
        await asyncio.to_thread(thread.join)
        await fetch.aclose()


@both_loops
async def test_nothing_is_sent_again_once_a_byte_of_the_answer_came():
    """It may have been done."""

    async def script(talk: Talk) -> None:
        await talk.read()
        await talk.send(ok())
        await talk.read()
        await talk.send(b"HTTP/1.1 2")

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        await whole(fetch, post(peer.url))
        with pytest.raises(ConnectionLost, match="in the middle of its answer"):
            await fetch(post(peer.url))
        await fetch.aclose()
    assert len(peer.requests) == 2


@both_loops
async def test_no_more_connections_than_allowed():
    """Who comes later waits in line; a body that is being read holds its connection; who gives up
    waiting is passed over.
    """
    go = asyncio.Event()

    async def script(talk: Talk) -> None:
        while await talk.read() is not None:
            await talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
            await go.wait()
            await talk.send(b"cd")

    async with serving(script) as peer:
        fetch = fetch_for_tests(most_connections=2)
        first = [await fetch(post(peer.url)) for _ in range(2)]
        waiting = [asyncio.create_task(whole(fetch, post(peer.url, b"%d" % n))) for n in range(4)]
        await turns(20)
        assert (peer.opened, len(peer.requests)) == (2, 2)
        waiting.pop(1).cancel()
        go.set()
        assert [await answer.read(10) for answer in first] == [b"abcd", b"abcd"]
        assert await asyncio.gather(*waiting) == [(200, b"abcd")] * 3
        await fetch.aclose()
    assert peer.opened == 2
    assert sorted(seen.body for seen in peer.requests[2:]) == [b"0", b"2", b"3"]


@both_loops
async def test_who_waits_gets_the_room_of_a_connection_that_is_given_up():
    """With one connection allowed: cancelled, closed, refused and broken ones each make room for
    the next.
    """

    async def script(talk: Talk) -> None:
        while (seen := await talk.read()) is not None and seen.body != b"break":
            if seen.body == b"hang":
                await talk.gone()
            await talk.send(ok())

    async with serving(script) as peer:
        fetch = fetch_for_tests(most_connections=1)
        hanging = asyncio.create_task(whole(fetch, post(peer.url, b"hang")))
        await turns(20)
        waiting = [
            asyncio.create_task(whole(fetch, post(peer.url, body)))
            for body in (b"break", b"a", b"break", b"b")
        ]
        await turns(20)
        hanging.cancel()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in found] == [ConnectionLost, tuple, ConnectionLost, tuple]
        await fetch.aclose()


@both_loops
async def test_cancelling_at_any_point_closes_the_connection():
    """While it connects, waits for the head, reads whole, reads in pieces, or waits in line; the
    client goes on working.
    """
    stages = {
        b"head": b"",
        b"whole": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab",
        b"pieces": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab",
    }

    async def script(talk: Talk) -> None:
        while (seen := await talk.read()) is not None:
            await talk.send(stages.get(seen.body, ok()))

    async def ask(stage: bytes) -> None:
        answer = await fetch(post(peer.url, stage))
        if stage == b"whole":
            await answer.read(100)
        async for _ in answer.chunks():
            pass

    async with serving(script) as peer:
        fetch = fetch_for_tests(most_connections=1)
        for stage in stages:
            for late in (0, 1, 2, 3, 5, 50):
                task = asyncio.create_task(ask(stage))
                await turns(late)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert await whole(fetch, post(peer.url)) == (200, b"{}")
        await fetch.aclose()


@both_loops
async def test_closing_an_answer_closes_its_connection_unless_it_has_come_whole():
    """What is read afterwards raises; closing again does nothing."""
    async with serving(
        once(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", then_wait=True)
    ) as peer:
        fetch = fetch_for_tests()
        answer = await fetch(post(peer.url))
        await answer.aclose()
        await answer.aclose()
        with pytest.raises(Unreachable, match="was closed"):
            await answer.read(100)
        await fetch.aclose()
    async with serving(always(ok(b"abc"))) as peer:
        fetch = fetch_for_tests()
        for _ in range(3):
            await (await fetch(post(peer.url))).aclose()
        assert peer.opened == 1
        await fetch.aclose()


@both_loops
async def test_the_end_of_the_client_ends_all_that_is_under_way():
    """A request that waits for its head, a body, one that waits in line: each raises Unreachable;
    so does what comes later.
    """
    async with (
        serving(once(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab", then_wait=True)) as peer,
        serving(once(then_wait=True)) as silent,
    ):
        fetch = fetch_for_tests(most_connections=1)
        answer = await fetch(post(peer.url))
        asked = [
            asyncio.create_task(answer.read(100)),
            asyncio.create_task(whole(fetch, post(peer.url))),
            asyncio.create_task(whole(fetch, post(silent.url))),
        ]
        await turns(20)
        while not silent.requests:
            await turns()
        asked.append(
            asyncio.create_task(whole(fetch, post(f"http://127.0.0.1:{silent.port}/other")))
        )
        await turns(3)
        await fetch.aclose()
        await fetch.aclose()
        assert [str(one) for one in await asyncio.gather(*asked, return_exceptions=True)] == [
            "This HTTP client was closed."
        ] * 4
        with pytest.raises(Unreachable, match="This HTTP client was closed"):
            await fetch(post(peer.url))


@both_loops
async def test_the_end_of_the_client_ends_connecting():
    """Also where TLS waits for a server that says nothing."""

    async def script(talk: Talk) -> None:
        await talk.gone()

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        asked = asyncio.create_task(fetch(get(peer.url.replace("http:", "https:"))))
        while not peer.opened:
            await turns()
        await fetch.aclose()
        with pytest.raises(Unreachable, match="was closed"):
            await asked


@both_loops
async def test_waits_are_bounded():
    """For a connection (TLS with one who says nothing) and, where asked for, for the head of an
    answer.
    """

    async def script(talk: Talk) -> None:
        await talk.gone()

    async with serving(script) as peer:
        fetch = fetch_for_tests(connect_seconds=0.05)
        with pytest.raises(
            TimedOut, match=rf"no connection to https://127.0.0.1:{peer.port} within 0.05 seconds"
        ):
            await fetch(get(peer.url.replace("http:", "https:")))
        await fetch.aclose()
        fetch = fetch_for_tests(head_seconds=0.05)
        with pytest.raises(
            TimedOut,
            match=rf"http://127.0.0.1:{peer.port} did not begin to answer within 0.05 seconds",
        ):
            await fetch(get(peer.url))
        await fetch.aclose()


@both_loops
async def test_nobody_listens():
    """In words that say what to do."""
    async with serving(always(ok())) as peer:
        pass
    fetch = fetch_for_tests()
    with pytest.raises(
        Unreachable,
        match=(
            rf"Nothing listens on http://127.0.0.1:{peer.port}: .* "
            r"Check that the server is running, and check the port\."
        ),
    ):
        await fetch(get(peer.url))
    with pytest.raises(Unreachable, match=r"The host no-such-host\.invalid was not found"):
        await fetch(get("http://no-such-host.invalid/"))
    await fetch.aclose()


@both_loops
async def test_idle_connections_are_closed_after_a_while():
    """By the client, at its own time; one that is busy is left alone."""
    gone = asyncio.Event()

    async def script(talk: Talk) -> None:
        while (seen := await talk.read()) is not None:
            await talk.send(ok() if seen.body != b"hang" else b"")
        gone.set()

    async with serving(script) as peer:
        fetch = fetch_for_tests(keep_seconds=0.04)
        busy = asyncio.create_task(fetch(post(peer.url, b"hang")))
        while not peer.requests:
            await turns()
        await whole(fetch, post(peer.url))
        await gone.wait()
        assert peer.open == 1
        assert not busy.done()
        busy.cancel()
        await whole(fetch, post(peer.url))
        await fetch.aclose()
    assert peer.opened == 3


@both_loops
async def test_garbage_on_an_idle_connection_is_nobodys_answer():
    """A server that speaks unasked loses the connection, and the next request goes elsewhere."""
    spoken = asyncio.Event()

    async def script(talk: Talk) -> None:
        await talk.read()
        await talk.send(ok(b"first"))
        if talk.number == 0:
            await talk.send(ok(b"evil"))
            await talk.gone()
            spoken.set()
        await talk.gone()

    async with serving(script) as peer:
        fetch = fetch_for_tests()
        assert await whole(fetch, post(peer.url)) == (200, b"first")
        await spoken.wait()
        assert await whole(fetch, post(peer.url)) == (200, b"first")
        await fetch.aclose()


@pytest.mark.parametrize("loop", LOOPS)
def test_another_loop_may_follow_once_the_first_has_closed(loop: str):
    """A client that was made once serves loop after loop; two at the same time are refused in
    words.
    """
    fetch = fetch_for_tests()

    async def use() -> None:
        async with serving(always(ok())) as peer:
            assert await whole(fetch, post(peer.url)) == (200, b"{}")
            other = asyncio.new_event_loop()
            try:
                with pytest.raises(RuntimeError, match="belongs to another event loop"):
                    await asyncio.to_thread(other.run_until_complete, fetch(post(peer.url)))
            finally:
                other.close()
            for connection in list(fetch._live):
                connection.fail(Unreachable("over"))
            await turns()

    for _ in range(2):
        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(tidily(use()))
    asyncio.run(fetch.aclose())


@both_loops
async def test_a_connection_leaves_no_ring_for_the_collector():
    """Its parser, its transport and its answer are freed at once."""
    async with serving(always(ok())) as peer:
        fetch = fetch_for_tests()
        answer = await fetch(post(peer.url))
        await answer.read(10)
        (connection,) = fetch._live
        parser = (
            weakref.ref(connection._parser) if type(connection._parser).__weakrefoffset__ else None
        )
        await fetch.aclose()
        assert connection._parser is None
        assert parser is None or parser() is None
        assert not fetch._live


@both_loops
async def test_most_is_at_least_one():
    """And an agent is a line of plain text."""
    with pytest.raises(ValueError, match="at least one connection"):
        HttpFetch(most_connections=0)
    with pytest.raises(ValueError, match="User-Agent"):
        HttpFetch(agent="a\r\nX: y")


async def app(scope, receive, send):
    """Gives back what it gets, in pieces."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    await send(
        {
            "type": "http.response.start",
            "status": 201,
            "headers": [(b"x-path", scope["path"].encode())],
        }
    )
    for n in range(0, len(body), 100_000):
        await send({"type": "http.response.body", "body": body[n : n + 100_000], "more_body": True})
    await send({"type": "http.response.body"})


@both_loops
async def test_with_uvicorn():
    """A server of other makers, with chunks and keep-alive of its own."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="error", lifespan="off", http="httptools")
    )
    running = asyncio.create_task(server.serve())
    while not server.started:
        await turns()
    (sock,) = server.servers[0].sockets
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/a%20b"
    fetch = fetch_for_tests()
    for size in (0, 1, 250_000, 1):
        answer = await fetch(Request("PUT", url, (("Content-Type", "x/y"),), b"z" * size))
        assert (answer.status, answer.headers["x-path"]) == (201, "/a b")
        assert await answer.read(size) == b"z" * size
    many = await asyncio.gather(*(whole(fetch, post(url, b"%d" % n)) for n in range(50)))
    assert many == [(201, b"%d" % n) for n in range(50)]
    await fetch.aclose()
    server.should_exit = True
    await running
    gc.collect()
