/** Shells of an agent, from the request to the exit, over real sockets. */
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ackFrame, pingFrame, resizeFrame, signalFrame } from '../../../src/terminal/frames.js';
import { TERMINAL_CLOSE } from '../../../src/terminal/limits.js';
import { isRoot, needs, place } from '../../support/agent.js';
import { AgentEnd, type Relay } from '../../support/agent-terminal.js';
import { until } from '../../support/orch.js';

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe('a shell', () => {
  it('opens, answers, and ends with its status; it is forgotten when the orchestrator has all', async () => {
    const agent = await AgentEnd.start();
    const { id, relay } = agent.open();
    relay.closes = false;
    expect(await agent.answer(id)).toMatchObject({ error: null, shell: expect.stringMatching(/^\//) });
    relay.type('echo "sum $((40 + 2))"; exit 7\n');
    const exit = await relay.ended();
    expect(exit).toEqual({ code: 7, signal: null, reason: 'exited', final_offset: relay.received });
    expect(relay.text()).toContain('sum 42\n');
    expect(agent.terminals.list().sessions).toEqual([{ session_id: id, attached: true }]);
    relay.socket?.close(TERMINAL_CLOSE.done);
    await agent.empty();
    expect(agent.authLog).toEqual([
      expect.stringMatching(/^terminal opened for user \S+ by operator ada, session /),
      expect.stringMatching(/^terminal closed for user \S+ by operator ada, session /),
    ]);
  });

  it('is a login shell at home, with a clean environment and no descriptors of others', async () => {
    process.env.ORCH_TEST_CANARY = 'leaks';
    const agent = await AgentEnd.start();
    const others = [agent.open(), agent.open()];
    await Promise.all(others.map(({ id }) => agent.answer(id)));
    const { id, relay } = agent.open({ operator: 'ada lovelace', term: 'no-such-terminal' });
    const { user, shell } = await agent.answer(id);
    // Asleep in the end: a prompt may run commands, to which the shell has a pipe.
    relay.type(
      'stty -echo; PS1=; echo begin; tr "\\0" "\\n" < /proc/$$/environ; echo "name=$0 at=$PWD"; echo end; echo pid=$$=; sleep 60\n',
    );
    await until(() => /pid=\d+=\n/.test(relay.text()), 'it has said all');
    const pid = /pid=(\d+)=\n/.exec(relay.text())?.[1];
    const shown = relay.text().split('begin\n').pop()?.split('end\n')[0] ?? '';
    const env = new Map(shown.split('\n').map((line) => [line.split('=')[0], line.slice(line.indexOf('=') + 1)]));
    expect(env.get('USER')).toBe(user);
    expect(env.get('LOGNAME')).toBe(user);
    expect(env.get('SHELL')).toBe(shell);
    expect(env.get('TERM')).toBe('xterm-256color');
    expect(env.get('LANG')).toMatch(/\S/);
    expect(env.get('ORCH_OPERATOR')).toBe('ada lovelace');
    expect(env.get('ORCH_SESSION')).toBe(id);
    expect(shown).not.toMatch(/CANARY|NODE_|VITEST/);
    const known = ['HOME', 'USER', 'LOGNAME', 'SHELL', 'PATH', 'LANG', 'TERM', 'ORCH_OPERATOR', 'ORCH_SESSION'];
    const left = [...env.keys()].filter((name) => name !== undefined && !known.includes(name));
    expect(left.filter((name) => !['', 'PWD', 'SHLVL', '_', 'name'].includes(name as string))).toEqual([]);
    expect(shown).toMatch(/name=-\w+ at=/);
    // Shells keep their terminal open for themselves too: bash under 255, a plain one under 10.
    const descriptors = readdirSync(`/proc/${pid}/fd`);
    expect(descriptors.filter((fd) => fd !== '255' && fd !== '10')).toEqual(['0', '1', '2']);
    const terminal = readlinkSync(`/proc/${pid}/fd/0`);
    for (const fd of descriptors) expect(['/dev/tty', terminal]).toContain(readlinkSync(`/proc/${pid}/fd/${fd}`));
    delete process.env.ORCH_TEST_CANARY;
  });

  it('shows all of what many short commands write', async () => {
    const agent = await AgentEnd.start();
    const file = join(place(), 'text');
    for (const size of [1_000, 5_000, 20_000, 200_000, 1_000_000]) {
      const text = Buffer.from(randomBytes(size).toString('base64').slice(0, size));
      writeFileSync(file, text);
      await Promise.all(
        Array.from({ length: 2 }, async () => {
          const { relay } = agent.open();
          relay.type(`stty -echo; printf begin; exec cat '${file}'\n`);
          const { final_offset } = await relay.ended();
          expect(final_offset).toBe(relay.received);
          const { bytes } = relay;
          // The command itself is echoed, with the word in it.
          const at = bytes.lastIndexOf('begin') + 'begin'.length;
          expect(sha(bytes.subarray(at))).toBe(sha(text));
          relay.socket?.close();
        }),
      );
    }
    await agent.empty();
  });

  it('takes a paste of 200 KB through the windows of both sides', async () => {
    const agent = await AgentEnd.start();
    const file = join(place(), 'pasted');
    const text = Buffer.from(randomBytes(200_000).toString('base64').slice(0, 200_000));
    const { relay } = agent.open();
    relay.type(`stty raw -echo; echo re''ady; head -c ${text.length} > '${file}'; exit\n`);
    await relay.shows('ready');
    relay.type(text);
    await relay.ended();
    expect(sha(readFileSync(file))).toBe(sha(text));
  });

  it('takes the newest size, and none that comes late', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.open({ cols: 100, rows: 40 });
    relay.type('stty size\n');
    await relay.shows('40 100');
    relay.socket?.send(resizeFrame(120, 50, 7));
    relay.socket?.send(resizeFrame(10, 10, 6));
    relay.type('stty size\n');
    await relay.shows('50 120');
    relay.socket?.send(resizeFrame(0, 65_535, 8));
    relay.type('stty size\n');
    await relay.shows('1000 1');
    for (let at = 0; at < 5_000; at += 1) relay.socket?.send(resizeFrame(100 + (at % 100), 33, 9 + at));
    relay.type('stty size\n');
    await relay.shows('33 199');
  });

  it('takes sizes on each new socket, whatever number they begin with there', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.open({ cols: 100, rows: 40 });
    relay.type('stty size\n');
    await relay.shows('40 100');
    relay.socket?.send(resizeFrame(120, 50, 1_000));
    relay.type('stty size\n');
    await relay.shows('50 120');
    const { length } = relay.sockets;
    relay.socket?.cut();
    await until(() => relay.sockets.length > length, 'it is dialled again');
    relay.socket?.send(resizeFrame(90, 30, 10));
    relay.type('stty size\n');
    await relay.shows('30 90');
  });

  it('passes signals of the list to the foreground, and no others', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.open();
    relay.type(
      'PS1=; stty -echo; echo pid=$$; bash -c "trap : USR1; echo u$((1 + 1))p; exec sleep 60"; echo "status=$?"\n',
    );
    await relay.shows('u2p\n');
    relay.socket?.send(signalFrame('USR1'));
    relay.socket?.send(signalFrame('TERM'));
    await relay.shows('status=143');
    relay.type('exit 0\n');
    expect(await relay.ended()).toMatchObject({ code: 0 });
  });

  it('is read no further than the orchestrator allows, and its memory stays flat', async () => {
    const agent = await AgentEnd.start();
    const { id, relay } = agent.open({}, null);
    await agent.answer(id);
    await until(() => relay.socket !== null, 'it has dialled');
    // Nothing comes before the first word of the orchestrator, and then no more than it says.
    relay.type('exec yes 0123456789abcdef\n');
    await roundTrips(relay);
    expect(relay.received).toBe(0);
    relay.socket?.send(ackFrame(0, 300_000));
    await until(() => relay.received === 300_000, 'all that is allowed has come');
    await roundTrips(relay);
    expect(relay.received).toBe(300_000);
    const memory = memoryOfHost();
    relay.window = 256 * 1024;
    relay.socket?.send(ackFrame(relay.received, relay.received + relay.window));
    await until(() => relay.received > 10_000_000, 'much has come');
    relay.window = null;
    await roundTrips(relay);
    expect(memoryOfHost() - memory).toBeLessThan(60);
    agent.close(id);
    await agent.empty();
  });

  it('does not fill the memory when its socket takes nothing', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.open();
    relay.type('exec yes 0123456789abcdef\n');
    await until(() => relay.received > 1_000_000, 'it flows');
    relay.socket?.stopReading();
    const memory = memoryOfHost();
    // A pause: with a socket that is not read there is nothing to wait for, and the memory of a fault would grow meanwhile.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(memoryOfHost() - memory).toBeLessThan(40);
    relay.socket?.goOnReading();
    const { received } = relay;
    await until(() => relay.received > received + 2_000_000, 'it goes on');
  });

  it('answers pings, and breaks off with one that speaks otherwise', async () => {
    const agent = await AgentEnd.start();
    const { relay } = agent.open();
    await until(() => relay.socket !== null, 'it has dialled');
    relay.socket?.send(pingFrame(4711));
    await until(() => relay.socket?.frames.some((f) => f.type === 'pong' && f.t === 4711) === true, 'a pong comes');
    relay.socket?.send(Buffer.of(200, 1, 2));
    relay.type('echo still $((1 + 1))\n');
    await relay.shows('still 2');
    const [first] = relay.sockets;
    first?.send(ackFrame(relay.received + 10_000_000, relay.received + 20_000_000));
    await until(() => first?.closed === TERMINAL_CLOSE.violation, 'the socket is closed');
    relay.type('echo again $((1 + 2))\n');
    await relay.shows('again 3');
    expect(relay.sockets.length).toBe(2);
  });

  it('runs as the user of the settings, with its groups and its terminal', async (context) => {
    needs(context, isRoot, 'root');
    const agent = await AgentEnd.start();
    agent.settings = { ...agent.settings, 'remote_terminal.user': 'nobody', 'remote_terminal.shell': '/bin/bash' };
    const { id, relay } = agent.open();
    expect(await agent.answer(id)).toMatchObject({ user: 'nobody', shell: '/bin/bash', error: null });
    relay.type(
      'PS1=; stty -echo; echo begin; id; echo "$0 $HOME $PWD"; stat -c %U $(tty); echo hello > /dev/tty; grep CapEff /proc/self/status; exit\n',
    );
    await relay.ended();
    const shown = relay.text().split('begin\n').pop() ?? '';
    expect(shown).toMatch(/uid=\d+\(nobody\) gid=\d+\(nogroup\)/);
    expect(shown).toContain('-bash /nonexistent /\nnobody\nhello\n');
    expect(shown).toMatch(/CapEff:\s+0{16}/);
  });
});

/** Megabytes of the process of the terminals, which is the only child of its kind. */
/** Lets a session that floods go on for a while: each answer lies behind what its process could have sent before. */
async function roundTrips({ socket }: Relay): Promise<void> {
  for (let at = 1; at <= 15; at += 1) {
    const answers = socket?.frames.filter(({ type }) => type === 'pong').length ?? 0;
    socket?.send(pingFrame(at));
    await until(() => (socket?.frames.filter(({ type }) => type === 'pong').length ?? 0) > answers, 'a pong comes');
  }
}

function memoryOfHost(): number {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ');
  const host = children.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('terminal-host'));
  if (host === undefined) throw new Error('there is no such process');
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${host}/status`, 'utf8'))?.[1]) / 1024;
}
