/** Output comes to the emulator in memory that is shared: every slot is given back, whatever becomes of the screen that it was for. */
import { setImmediate as round } from 'node:timers/promises';
import { expect, it } from 'vitest';
import {
  type FromEmulator,
  ScreenScheduler,
  type ToEmulator,
} from '../../../daemon/terminal/emulator/screen-scheduler.js';
import { ScreenMaker } from '../../../daemon/terminal/emulator/virtual-screen.js';
import { OutputBatch, SharedSlots, SLOT } from '../../../daemon/terminal/output-slots.js';

/** A thread of screens, without the thread; and how many slots are out. */
function newTurns() {
  const said: FromEmulator[] = [];
  let posted = 0;
  let freed = 0;
  const turns = new ScreenScheduler({
    maker: new ScreenMaker(),
    post: (message) => {
      said.push(message);
      if (message.is !== 'free') return;
      for (const slot of message.slots) slots.release(slot);
      freed += message.slots.length;
    },
    monotonic: () => performance.now(),
  });
  const slots = new SharedSlots((slot, memory) => turns.take({ do: 'slot', slot, memory }));
  const post = (message: ToEmulator) => {
    if (message.do === 'write' && message.slot !== null) posted += 1;
    turns.take(message);
  };
  const open = (id: number) => {
    post({ do: 'open', id, cols: 80, rows: 24, offset: 0 });
    return new OutputBatch(slots, (place) => post({ do: 'write', id, ...place }));
  };
  return { said, post, open, counts: () => ({ posted, freed }) };
}

async function untilQuiet({ said }: { said: readonly unknown[] }): Promise<void> {
  for (let before = -1; before !== said.length; ) {
    before = said.length;
    for (let left = 50; left > 0; left -= 1) await round();
  }
}

const LINE = Buffer.from(`\x1b[32m${'x'.repeat(60)}\x1b[0m\r\n`);
const flood = (bytes: number): Buffer => Buffer.alloc(bytes, LINE);

it('gives slots back when they are parsed, and shows what was in them and in messages beyond them', async () => {
  const thread = newTurns();
  const gatherings = Array.from({ length: 8 }, (_, id) => thread.open(id));
  for (const [id, gathering] of gatherings.entries()) {
    gathering.add(flood(14 * SLOT));
    gathering.add(Buffer.from(`\r\nthis is ${id}`));
    gathering.flush();
    thread.post({ do: 'picture', id });
  }
  await untilQuiet(thread);
  const { posted, freed } = thread.counts();
  expect(posted).toBeGreaterThan(50);
  expect(freed).toBe(posted);
  const pictures = thread.said.filter((message) => message.is === 'picture');
  expect(pictures).toHaveLength(8);
  for (const { id, bytes } of pictures) expect(Buffer.from(bytes).toString()).toContain(`this is ${id}`);
});

it('gives back the slots of screens that are closed or gone', async () => {
  const thread = newTurns();
  const [first, second] = [thread.open(1), thread.open(2)];
  first?.add(flood(5 * SLOT));
  second?.add(flood(5 * SLOT));
  thread.post({ do: 'close', id: 1 });
  first?.add(flood(2 * SLOT));
  await untilQuiet(thread);
  const { posted, freed } = thread.counts();
  expect(posted).toBe(12);
  expect(freed).toBe(12);
});

it('gives a slot back whose output is dropped', () => {
  const slots = new SharedSlots(() => {});
  const gathering = new OutputBatch(slots, () => {});
  gathering.add(Buffer.from('a'));
  gathering.drop();
  const other = new OutputBatch(slots, ({ slot }) => expect(slot).toBe(0));
  other.add(Buffer.from('b'));
  other.flush();
  expect.assertions(1);
});
