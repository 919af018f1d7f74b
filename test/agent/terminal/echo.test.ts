/** The agent's reports of the input: its position, and how the program reads it. */
import { describe, expect } from 'vitest';
import { askEchoFrame, type EchoAck } from '../../../src/terminal/frames.js';
import { AgentEnd, type Relay } from '../../support/agent-terminal.js';
import { itNeeding } from '../../support/needing.js';
import { until } from '../../support/orch.js';

const echoes = ({ socket }: Relay): readonly EchoAck[] =>
  (socket?.frames ?? []).filter((frame) => frame.type === 'echo');

/** Asks about all that was typed, and waits until it is settled. */
async function settled(relay: Relay): Promise<EchoAck> {
  const isTaken = () => relay.inputTaken > 0 && relay.inputTaken === relay.inputSent;
  await until(() => relay.socket !== null && isTaken(), 'all is taken');
  relay.socket?.send(askEchoFrame(relay.inputSent));
  await until(() => (echoes(relay).at(-1)?.settled ?? -1) >= relay.inputSent, 'it is settled');
  return echoes(relay).at(-1) as EchoAck;
}

describe('the echo of what is typed', () => {
  itNeeding('bash', 'stty')('is reported when it is asked for, with how the program reads', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.open();
    // A shell without an editor of its own reads lines.
    relay.type('exec bash --norc --noprofile +o emacs\n');
    relay.type("echo plain; read -r one; printf al''l\n");
    await relay.shows('plain');
    const lines = await settled(relay);
    expect(lines).toMatchObject({ reading: 'lines', given: relay.inputSent });
    expect(lines.output).toBeLessThanOrEqual(relay.received);
    const told = echoes(relay).length;

    relay.type('typed');
    await relay.shows('typed');
    expect(echoes(relay)).toHaveLength(told);

    relay.type("\nread -rs two; printf do''ne\n");
    await relay.shows('all');
    expect(await settled(relay)).toMatchObject({ reading: 'hidden' });
    relay.type('secret\n');
    await relay.shows('done');
    relay.type("set -o emacs; printf ke''ys\n");
    await relay.shows('keys');
    relay.type('x');
    expect(await settled(relay)).toMatchObject({ reading: 'keys' });
    relay.type('\x03exit\n');
    await relay.ended();
  });

  itNeeding(
    'bash',
    'stty',
    'script',
  )('is unknown where another terminal may lie behind this one', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.open();
    relay.type("exec bash --norc --noprofile\nprintf pl''ain\n");
    await relay.shows('plain');
    relay.type('x');
    expect(await settled(relay)).toMatchObject({ reading: 'keys' });
    // As `sudo`, whose command has a terminal of its own.
    relay.type("\x15exec 5<>/dev/ptmx; printf ma''ster\n");
    await relay.shows('master');
    relay.type('x');
    expect(await settled(relay)).toMatchObject({ reading: 'unknown' });
    relay.type("\x15exec 5>&-; exec script -qc 'bash --norc --noprofile' /dev/null\nprintf ne''sted\n");
    await relay.shows('nested');
    relay.type('x');
    expect(await settled(relay)).toMatchObject({ reading: 'unknown' });
    relay.type('\x15exit\n');
    await relay.ended();
  });

  itNeeding('bash', 'stty')('is taken as edited only with all settings of a line editor', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.open();
    relay.type("exec bash --norc --noprofile +o emacs\nPS1=''; printf be''gun\n");
    await relay.shows('begun');
    const settings = [
      { more: '', reading: 'keys' },
      { more: 'icrnl inlcr', reading: 'keys' },
      // Enter comes as ^J, as when a program reads single keys.
      { more: 'icrnl', reading: 'unknown' },
      { more: 'echo', reading: 'unknown' },
      // As `ssh` sets its terminal.
      { more: '-isig', reading: 'unknown' },
      { more: '-opost', reading: 'unknown' },
      { more: 'icanon', reading: 'hidden' },
      { more: 'icanon echo', reading: 'lines' },
    ];
    for (const [index, { more, reading }] of settings.entries()) {
      // The terminal stays as it is set until the key arrives.
      relay.type(
        `stty -icanon -echo -icrnl isig opost ${more}; printf s''et${index}; head -c1 >/dev/null; stty sane; printf e''nd${index}\n`,
      );
      await relay.shows(`set${index}`);
      expect([more, (await settled(relay)).reading]).toEqual([more, reading]);
      relay.type('\n');
      await relay.shows(`end${index}`);
    }
    relay.type('exit\n');
    await relay.ended();
  });

  itNeeding('stty')('is told once more after a new socket, and only of input that is settled', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.open();
    relay.type('exec cat\n');
    await settled(relay);
    relay.type('line\n');
    // About input that has not come.
    relay.socket?.send(askEchoFrame(relay.inputSent + 1_000));
    await until(() => (echoes(relay).at(-1)?.settled ?? 0) === relay.inputSent, 'the line is settled');
    for (const { given, settled: done } of echoes(relay)) expect(done).toBeLessThanOrEqual(given);
    relay.socket?.cut();
    await until(() => relay.sockets.length === 2, 'it is back');
    relay.type('again\n');
    await relay.shows('again\nagain');
    expect((await settled(relay)).reading).toBe('lines');
    relay.type('\x04');
    await relay.ended();
  });
});
