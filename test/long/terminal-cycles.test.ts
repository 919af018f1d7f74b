/** A thousand terminals and commands, one after the other: nothing of them stays behind in any of the three processes. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type HeapView, heapOf, MEBIBYTE, type ProcessView, viewOf } from '../support/long.js';
import { until } from '../support/orch.js';
import { TerminalClient, TerminalFleet } from '../support/terminal-fleet.js';

const CYCLES = Number(process.env.ORCH_LONG_CYCLES ?? 1_000);
const WARM_UP = 150;
const AT_A_TIME = 4;
/** More than what a collector leaves lying about, less than a few kilobytes a cycle. */
const HEAP_SLACK = 3 * MEBIBYTE;
const RESIDENT_SLACK = 48 * MEBIBYTE;

let fleet: TerminalFleet;

beforeAll(async () => {
  fleet = await TerminalFleet.start({ serve: ['--terminal-per-operator', '1000'] });
});
afterAll(() => fleet.dispose());

/** One session, of a kind that depends on its number; throws when it does not end as it should. */
async function cycle(number: number): Promise<void> {
  const kind = number % 4;
  if (kind === 0) {
    const shell = await TerminalClient.shell(fleet);
    shell.type('echo here; exit 3\r');
    expect(await shell.ended).toMatchObject({ kind: 'exit', exit: { code: 3 }, complete: true });
  } else if (kind === 1) {
    const shell = await TerminalClient.shell(fleet);
    await shell.shows(/[$#] /);
    shell.session.close();
    expect(await shell.ended).toMatchObject({ kind: 'exit', exit: { reason: 'closed' } });
  } else {
    const script = kind === 2 ? 'echo out; echo err >&2; exit 4' : 'seq 1 20000; exit 4';
    const command = await TerminalClient.exec(fleet, ['sh', '-c', script]);
    expect(await command.ended).toMatchObject({ kind: 'exit', exit: { code: 4 }, complete: true });
  }
}

async function cycles(count: number): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) {
      next += 1;
      await cycle(next);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
}

interface Sample {
  readonly name: string;
  readonly view: ProcessView;
  readonly heap: HeapView;
}

const processes = () =>
  [
    ['orchestrator', fleet.serverPid],
    ['agent', fleet.agentPid],
    ['terminal host', fleet.hostPid],
  ] as const;

/** Waits until nothing of the last sessions is in flight. */
async function sample(): Promise<readonly Sample[]> {
  fleet.renewClient();
  const isQuiet = async () => {
    const open = await fleet.sandbox.json<unknown[]>(['term', 'list']);
    return open.length === 0 && viewOf(fleet.hostPid).children === 0;
  };
  await until(isQuiet, 'no session is open');
  // Sockets and recordings are closed a few seconds later at most.
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  const samples: Sample[] = [];
  for (const [name, pid] of processes()) samples.push({ name, view: viewOf(pid), heap: await heapOf(pid) });
  return samples;
}

const shown = ({ view, heap }: Sample): string =>
  `${view.descriptors.length} descriptors, ${view.threads} threads, ${view.children} children, ` +
  `${(view.resident / MEBIBYTE).toFixed(1)} MiB, heap ${(heap.heap / MEBIBYTE).toFixed(2)} MiB, ` +
  JSON.stringify(heap.resources);

it.skipIf(process.platform !== 'linux')(`leaves nothing of ${CYCLES} sessions (needs Linux)`, async () => {
  await cycles(WARM_UP);
  const before = await sample();
  const start = performance.now();
  await cycles(CYCLES);
  const took = performance.now() - start;
  const after = await sample();
  process.stderr.write(`${CYCLES} sessions in ${(took / 1000).toFixed(1)} s\n`);
  for (const [index, one] of after.entries()) {
    const first = before[index] as Sample;
    process.stderr.write(`${one.name}\n  ${shown(first)}\n  ${shown(one)}\n`);
  }
  for (const [index, { name, view, heap }] of after.entries()) {
    const first = before[index] as Sample;
    expect(view.descriptors, name).toEqual(first.view.descriptors);
    expect(view.threads, name).toBeLessThanOrEqual(first.view.threads);
    expect([view.children, view.zombies], name).toEqual([first.view.children, 0]);
    expect(view.resident, name).toBeLessThan(first.view.resident + RESIDENT_SLACK);
    expect(heap.heap, name).toBeLessThan(first.heap.heap + HEAP_SLACK);
    expect(heap.resources.Timeout ?? 0, name).toBeLessThanOrEqual((first.heap.resources.Timeout ?? 0) + 2);
  }
});
