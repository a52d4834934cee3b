// @ts-check
// A job of the setup in the background: a test, an examination, a login. Its events are followed.
import { useEffect, useRef, useState } from "../kit/kit.js";
import { act } from "../kit/net.js";

/**
 * @typedef {{
 *   events: any[],
 *   running: boolean,
 *   wrong: string,
 *   start: (name: string, body: Record<string, unknown>) => Promise<void>,
 *   reply: (text: string) => Promise<void>,
 *   cancel: () => void,
 *   clear: () => void,
 * }} Job
 */

/** A job that a component starts and follows; it is cancelled with the component. @returns {Job} */
export function useJob() {
  const [events, setEvents] = useState(/** @type {any[]} */ ([]));
  const [running, setRunning] = useState(false);
  const [wrong, setWrong] = useState("");
  const id = useRef("");
  const turn = useRef(0);
  const end = () => {
    turn.current += 1;
    if (id.current) act("cancelJob", { job: id.current }).catch(() => undefined);
    id.current = "";
  };
  useEffect(() => end, []);
  const clear = () => {
    end();
    setEvents([]);
    setRunning(false);
    setWrong("");
  };
  const follow = async (mine) => {
    let known = /** @type {any[]} */ ([]);
    for (let over = false; !over;) {
      const answer = await act("followJob", { job: id.current, after: known.length });
      if (mine !== turn.current) return;
      known = [...known, ...answer.events];
      over = answer.done && !answer.events.length;
      setEvents(known);
    }
    id.current = "";
    setRunning(false);
  };
  const start = async (name, body) => {
    clear();
    const mine = turn.current;
    setRunning(true);
    try {
      id.current = (await act(name, body)).job;
      await follow(mine);
    } catch (bad) {
      if (mine !== turn.current) return;
      setWrong(bad instanceof Error ? bad.message : String(bad));
      setRunning(false);
    }
  };
  const reply = async (text) => {
    try {
      await act("replyJob", { job: id.current, text });
    } catch (bad) {
      setWrong(bad instanceof Error ? bad.message : String(bad));
    }
  };
  return { events, running, wrong, start, reply, cancel: clear, clear };
}
