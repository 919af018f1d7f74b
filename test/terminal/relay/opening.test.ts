/** How long agents have to answer that a program may start. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { StartRequests } from '../../../daemon/terminal/start-requests.js';
import type { NodeId } from '../../../src/kernel/ids.js';
import type { OrchestratorMessageOf } from '../../../src/wire/messages.js';

const BUSY = 'a'.repeat(32) as NodeId;
const DEAD = 'b'.repeat(32) as NodeId;
const COUNT = 200;

function openings() {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const link = { isConnected: () => true, holdOf: () => null, supports: () => true, send: () => true };
  const opening = new StartRequests({ link, timeoutMs: 15_000 });
  const outcomes = new Map<string, string>();
  const ask = (nodeId: NodeId, session_id: string): void => {
    const message: OrchestratorMessageOf<'terminal_open'> = {
      ...{ type: 'terminal_open', session_id, ticket: 'ticket', operator: 'ada', kind: 'exec', command: ['true'] },
      ...{ shell: null, term: '', cols: 80, rows: 24, stdin: false, timeout_secs: null },
    };
    opening.ask(nodeId, message).then(
      () => outcomes.set(session_id, 'open'),
      (error) => outcomes.set(session_id, error.code),
    );
  };
  const answer = (nodeId: NodeId, session_id: string): boolean =>
    opening.answered(nodeId, { type: 'terminal_answer', session_id, user: 'root', shell: null, error: null });
  return { ask, answer, outcomes };
}

describe('an agent that is asked for 200 commands at once', () => {
  it('may take as long as it likes while it answers one after the other', async () => {
    const { ask, answer, outcomes } = openings();
    for (let at = 0; at < COUNT; at += 1) ask(BUSY, `busy-${at}`);
    for (let at = 0; at < COUNT; at += 1) {
      await vi.advanceTimersByTimeAsync(14_000);
      expect(answer(BUSY, `busy-${at}`)).toBe(true);
    }
    await vi.advanceTimersByTimeAsync(0);
    expect([...outcomes.values()]).toEqual(Array.from({ length: COUNT }, () => 'open'));
  });

  it('is given up when it answers none for 15 s, whatever others and answers to other questions say', async () => {
    const { ask, answer, outcomes } = openings();
    for (const id of ['first', 'second', 'third']) ask(DEAD, id);
    ask(BUSY, 'busy');
    await vi.advanceTimersByTimeAsync(14_000);
    expect(answer(DEAD, 'first')).toBe(true);
    await vi.advanceTimersByTimeAsync(14_000);
    expect(answer(DEAD, 'unknown')).toBe(false);
    expect(answer(DEAD, 'busy')).toBe(false);
    expect(Object.fromEntries(outcomes)).toEqual({ first: 'open', busy: 'agent_timeout' });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(Object.fromEntries(outcomes)).toMatchObject({ second: 'agent_timeout', third: 'agent_timeout' });
  });
});
