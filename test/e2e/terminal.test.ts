/** Remote terminals with the real programs: orchestrator, agent, and `orch term` in a real terminal. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Agent } from '../../src/contract/agents.js';
import type { TerminalSession } from '../../src/contract/terminal.js';
import { itNeeding } from '../support/needing.js';
import { type Ready, type Running, Sandbox, until } from '../support/orch.js';
import { Pty } from '../support/pty.js';
import { TEST_SHELL } from '../support/test-shell.js';

vi.setConfig({ testTimeout: 120_000 });

const ORCH = fileURLToPath(new URL('../../dist/orch/orch.js', import.meta.url));
const sandbox = new Sandbox();
let server: Running;
let ready: Ready;

const connected = async () => {
  const agents = await sandbox.json<Agent[]>(['agents', 'list']);
  return agents.some((one) => one.name === 'web-01' && one.connected);
};

beforeAll(async () => {
  expect((await sandbox.orch(['operator', 'init'])).status).toBe(0);
  ({ server, ready } = await sandbox.serve());
  const create = ['profile', 'create', 'test', '--url', ready.api_url, '--tls-fingerprint', ready.tls_fingerprint];
  expect(await sandbox.orch(create)).toMatchObject({ status: 0 });
  expect(await sandbox.orch(['profile', 'use', 'test'])).toMatchObject({ status: 0 });
  const config = sandbox.path('agent.yaml');
  writeFileSync(config, `remote_terminal:\n  enabled: true\n  shell: ${TEST_SHELL}\n`, { mode: 0o600 });
  const words = ['--orchestrator-key', ready.public_key, '--data-dir', sandbox.path('agent'), '--config', config];
  sandbox.start(['agent', 'connect', ready.agent_address, ...words]);
  let agents: Agent[] = [];
  await until(async () => {
    agents = await sandbox.json<Agent[]>(['agents', 'list']);
    return agents.length === 1;
  }, 'the agent waits');
  const [agent] = agents;
  await sandbox.json(['agents', 'approve', agent?.node_id ?? '', '--name', 'web-01', '--yes']);
  await until(connected, 'the agent is connected');
});

afterAll(async () => {
  await sandbox.dispose();
});

interface Term {
  readonly pty: Pty;
  /** Types a line at the prompt. */
  line(text: string): void;
  /** Waits for the end: the exit status, and whether the terminal's settings are those from before. */
  finished(): Promise<{ readonly status: number; readonly restored: boolean }>;
}

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

const term = (args: readonly string[], size: { readonly cols?: number; readonly rows?: number } = {}): Term =>
  run(['term', ...args], size);

function run(args: readonly string[], size: { readonly cols?: number; readonly rows?: number } = {}): Term {
  const command = [process.execPath, ORCH, ...args].map(quote).join(' ');
  // The shell stays, as the last output of a program that ends may be lost in a terminal.
  const script = `stty -g; ${command}; echo "STATUS=$?="; stty -g; echo DONE; exec sleep 120`;
  const pty = new Pty(['/bin/bash', '--norc', '-c', script], { env: sandbox.env, cwd: sandbox.root, ...size });
  onTestFinished(() => pty.kill());
  return {
    pty,
    line: (text) => pty.write(`${text}\r`),
    finished: async () => {
      const [, status, after] = await pty.shows(/STATUS=(\d+)=\s+(\S+)\s+DONE/);
      const [, before] = await pty.shows(/^(\S+)/);
      return { status: Number(status), restored: before === after };
    },
  };
}

/** A terminal whose shell has a prompt that tests can wait for. */
async function shell(args: readonly string[] = ['web-01'], size = {}): Promise<Term> {
  const one = term(args, size);
  await one.pty.shows(/[$#] $/);
  one.line("PS1='rea''dy> '");
  await one.pty.shows(/ready> $/);
  return one;
}

const sessions = (): Promise<TerminalSession[]> => sandbox.json(['term', 'list']);

const newestSession = async (): Promise<string> =>
  (await sessions())
    .map(({ session_id }) => session_id)
    .sort()
    .at(-1) ?? '';

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

describe('orch term with the real programs', () => {
  it('runs commands in a shell', async () => {
    const one = await shell();
    one.line('tty; stty size; echo $((6 * 7)) $TERM');
    await one.pty.shows(/\/dev\/pts\/\d+\r\n24 80\r\n42 xterm-256color/);
    const all = await sessions();
    expect(all).toHaveLength(1);
    expect(all[0]).toMatchObject({ status: 'active', node_name: 'web-01', recording: 'on' });
    one.line('exit 7');
    expect(await one.finished()).toEqual({ status: 7, restored: true });
    await until(async () => (await sessions()).length === 0, 'it is closed');
  });

  it.each([
    ['exit 0', 0],
    ['exit 255', 255],
    ['kill -KILL $$', 137],
    ['kill -HUP $$', 129],
    ['exec sleep 0; true', 0],
    ['exec /nonexistent', 127],
  ])('ends with what %j ends with', async (line, status) => {
    const one = await shell();
    one.line(line.includes('nonexistent') ? `sh -c ${quote(line)}; exit $?` : line);
    expect(await one.finished()).toEqual({ status, restored: true });
  });

  itNeeding('vim')('lets one edit a file with vim', async () => {
    const one = await shell();
    const file = sandbox.path('edited');
    one.line(`vim -u NONE -N ${file}`);
    await one.pty.displays(/^~/);
    expect(one.pty.screen.buffer.active.type).toBe('alternate');
    one.pty.write('ihello 🦊 from vim\x1b:wq\r');
    await one.pty.shows(/written[\s\S]*ready> $/);
    expect(readFileSync(file, 'utf8')).toBe('hello 🦊 from vim\n');
    await until(() => one.pty.screen.buffer.active.type === 'normal', 'the shell has its screen again');
    one.line('exit');
    expect(await one.finished()).toEqual({ status: 0, restored: true });
  });

  itNeeding('less', 'top')('shows less and top, and leaves the terminal usable when they are killed', async () => {
    const one = await shell();
    one.line('seq 1 500 | less');
    await one.pty.displays(/^23$/);
    one.pty.write('G');
    await one.pty.displays(/^500$/);
    one.pty.write('q');
    await one.pty.displays(/ready>/);
    one.line('top -d 1');
    await one.pty.displays(/PID USER/);
    one.pty.write('\r~K');
    expect(await one.finished()).toEqual({ status: 254, restored: true });
    await until(() => one.pty.screen.buffer.active.type === 'normal', 'the normal screen is back');
  });

  itNeeding('tmux')('runs tmux inside', async () => {
    const one = await shell();
    one.line(`tmux -L orch-test-${process.pid} -f /dev/null new-session`);
    await one.pty.displays(/\[0\] 0:/);
    one.line("echo in''side $((40 + 2))");
    // Behind the prompt of a shell that was not ready for what was typed.
    await one.pty.displays(/inside 42$/);
    one.line('exit');
    await one.pty.displays(/\[exited\]/);
    one.line('exit 0');
    expect(await one.finished()).toEqual({ status: 0, restored: true });
  });

  it('takes a paste of 200 KB, byte for byte', async () => {
    const one = await shell();
    const paste = Buffer.from(randomBytes(150_000).toString('base64'));
    const file = sandbox.path('paste');
    one.line(`stty raw -echo; echo GO; head -c ${paste.length} > ${file}; stty sane; echo DO''NE`);
    await one.pty.shows(/\nGO/);
    one.pty.write(paste.toString());
    await one.pty.shows(/DONE/);
    expect(sha256(readFileSync(file))).toBe(sha256(paste));
    one.line('exit');
    expect(await one.finished()).toEqual({ status: 0, restored: true });
  });

  it('carries signs of every kind, Ctrl-C and new sizes', async () => {
    const one = await shell();
    one.line("printf '%s\\n' '🦊 ñ 漢字 👩‍👩‍👧'");
    await one.pty.displays(/^🦊 ñ 漢字/u);
    one.line("sleep 1000; echo ne''ver");
    await one.pty.shows(/ne''ver\r\n$/);
    one.pty.write('\x03');
    await one.pty.shows(/\^C[\s\S]*ready> $/);
    one.line('echo status=$?');
    await one.pty.shows(/status=130/);
    one.pty.resize(120, 40);
    await until(async () => {
      one.line('stty size');
      await new Promise((resolve) => setTimeout(resolve, 100));
      return /^40 120/m.test(one.pty.output);
    }, 'the shell knows the new size');
    one.line('exit');
    expect(await one.finished()).toEqual({ status: 0, restored: true });
  });

  itNeeding('vim')('suspends in the middle of vim and comes back', async () => {
    const command = [process.execPath, ORCH, 'term', 'web-01'].map(quote).join(' ');
    const script = `set -m; ${command}; echo "STOPPED=$?="; stty -a | grep -o -- '-*icanon'; fg > /dev/null; echo "STATUS=$?="; exec sleep 60`;
    const pty = new Pty(['/bin/bash', '--norc', '-c', script], { env: sandbox.env, cwd: sandbox.root });
    onTestFinished(() => pty.kill());
    await pty.shows(/[$#] $/);
    pty.write('vim -u NONE -N\r');
    await pty.displays(/^~/);
    pty.write('isome text\x1b');
    await pty.displays(/some text/);
    pty.write('\r~\x1a');
    await pty.shows(/STOPPED=148=\s+icanon/);
    await until(() => pty.lines.some((line) => line === 'some text'), 'the screen is drawn anew');
    expect(pty.screen.buffer.active.type).toBe('alternate');
    pty.write(':q!\r');
    await until(() => pty.screen.buffer.active.type === 'normal', 'the shell has its screen again');
    pty.write('exit 9\r');
    await pty.shows(/STATUS=9=/);
  });

  it('detaches, and is attached again with the same screen, by one who types and one who watches', async () => {
    const first = await shell();
    first.line('MEMORY=kept; echo on the screen');
    await first.pty.shows(/\non the screen\r\nready> $/);
    first.pty.write('\r~.');
    expect(await first.finished()).toEqual({ status: 255, restored: true });
    const [, id = ''] = await first.pty.shows(/orch term attach (\w{26})/);

    const second = term(['attach', id]);
    await second.pty.displays(/^on the screen/);
    second.line('echo $MEMORY');
    await second.pty.shows(/\nkept\r\n/);

    const watching = term(['attach', id.slice(0, 12)]);
    await watching.pty.shows(/you only watch/);
    await watching.pty.displays(/^kept/);
    watching.pty.write('echo not sent\r');
    second.line('echo for both');
    await watching.pty.displays(/^for both/);
    expect(second.pty.output).not.toContain('not sent');

    const taking = term(['attach', id, '--take']);
    await taking.pty.displays(/^for both/);
    taking.line('echo taken');
    await second.pty.displays(/^taken/);
    second.line('echo too late');
    await second.pty.shows(/you only watch/);
    taking.pty.write('\r~.');
    expect(await taking.finished()).toEqual({ status: 255, restored: true });
    await watching.pty.shows(/ left/);
    watching.pty.write('~w');
    await watching.pty.shows(/the pen was free, so you type now/);
    await second.pty.shows(/took the pen[\s\S]*took the pen/);
    watching.line('exit 5');
    expect(await second.finished()).toEqual({ status: 5, restored: true });
    expect(await watching.finished()).toEqual({ status: 5, restored: true });
  });

  it('leaves a shell whose client was killed to the next one, with its screen and the right to type', async () => {
    const killed = new Pty([process.execPath, ORCH, 'term', 'web-01'], { env: sandbox.env, cwd: sandbox.root });
    onTestFinished(() => killed.kill());
    await killed.shows(/[$#] $/);
    killed.write("MEMORY=kept; echo on the scr''een\r");
    await killed.displays(/^on the screen/);
    const id = await newestSession();
    process.kill(killed.pid, 'SIGKILL');
    const next = term(['attach', id]);
    await next.pty.displays(/^on the screen/);
    next.line('echo $MEMORY; exit 6');
    await next.pty.shows(/\nkept\r\n/);
    expect(await next.finished()).toEqual({ status: 6, restored: true });
  });

  it('leaves the cursor that a program has saved where it was, whatever is said in between', async () => {
    const first = await shell();
    const script = sandbox.path('saved.bash');
    const to = (row: number, col: number) => `\\033[${row};${col}H`;
    writeFileSync(
      script,
      `stty -echo; printf '\\033[2J${to(4, 7)}\\033[31m\\0337\\033[0m${to(20, 1)}question> '; read -r
      printf '\\0338HERE${to(20, 1)}second> '; read -r; printf '\\0338BACK${to(22, 1)}'; stty echo`,
    );
    first.line(`/bin/bash ${script}`);
    await first.pty.displays(/^question> /);
    const watching = term(['attach', await newestSession(), '--read-only']);
    await first.pty.displays(/^orch: .* joined to watch/);
    first.pty.write('\r');
    await first.pty.displays(/^second> /);
    await first.pty.displays(/^ {6}HERE$/);
    first.pty.write('\r');
    await first.pty.displays(/^ {6}BACK$/);
    expect(first.pty.lines.indexOf('      BACK')).toBe(3);
    await first.pty.displays(/ready> $|^ready>/);
    first.line('exit');
    expect(await first.finished()).toMatchObject({ restored: true });
    await watching.finished();
  });

  it('runs a command on a terminal with exec -t, and ends as the command does', async () => {
    const script =
      'tty; stty size; trap "echo caught" INT; echo ready; read -r line; read -r line; echo "<$line>"; exit 9';
    const one = run(['exec', '-t', 'web-01', '--', '/bin/bash', '-c', script], { cols: 90, rows: 20 });
    await one.pty.shows(/\/dev\/pts\/\d+\r\n20 90\r\nready\r\n/);
    const [session] = await sandbox.json<TerminalSession[]>(['term', 'list', '--kind', 'exec']);
    expect(session).toMatchObject({ kind: 'exec', command: ['/bin/bash', '-c', script], recording: 'on' });
    one.pty.write('\x03');
    await one.pty.shows(/caught\r\n/);
    one.line('');
    one.line('typed');
    await one.pty.shows(/<typed>\r\n/);
    expect(await one.finished()).toEqual({ status: 9, restored: true });
  });

  it('leaves a command on a terminal at ~., to be attached to with the same screen', async () => {
    const script = 'printf "\\033[5;9Hfive nine"; read -r line; exit 4';
    const one = run(['exec', '-t', 'web-01', '--', '/bin/bash', '-c', script]);
    await one.pty.displays(/^ {8}five nine/);
    one.pty.write('~.');
    expect(await one.finished()).toEqual({ status: 255, restored: true });
    const [, id = ''] = await one.pty.shows(/orch term attach (\w{26})/);
    const other = term(['attach', id]);
    await other.pty.displays(/^ {8}five nine/);
    other.line('');
    expect(await other.finished()).toEqual({ status: 4, restored: true });
  });

  it.each([
    [['exec', '-t', '--timeout', '5s', 'web-01', '--', 'true'], /--tty and --timeout exclude each other/],
    [['exec', '-t', '-l', 'role=web', '--', 'true'], /--tty and --selector exclude each other/],
    [['exec', '-t', 'web-0[1-2]', '--', 'true'], /--tty takes a single agent|no agent/],
    [['exec', '-e', 'none', 'web-01', '--', 'true'], /--escape-char is for --tty/],
  ])('refuses %j', async (args, words) => {
    const one = run(args);
    expect((await one.finished()).status).not.toBe(0);
    await one.pty.shows(words);
  });

  it('refuses exec -t without a terminal to type at', async () => {
    const ran = await sandbox.orch(['exec', '-t', 'web-01', '--', 'true']);
    expect(ran).toMatchObject({ status: 64, stdout: '' });
    expect(ran.stderr).toMatch(/--tty needs a terminal on standard input/);
  });

  it('tells one who watches and lags how much was not shown, and where it is', async () => {
    const first = await shell();
    const id = await newestSession();
    const watching = term(['attach', id, '--read-only']);
    await watching.pty.shows(/you watch/);
    const cli = Number(readFileSync(`/proc/${watching.pty.pid}/task/${watching.pty.pid}/children`, 'latin1').trim());
    process.kill(cli, 'SIGSTOP');
    first.line("seq 1 600000; echo flo''oded");
    await first.pty.shows(/flooded/);
    process.kill(cli, 'SIGCONT');
    await watching.pty.displays(/flooded/);
    await watching.pty.displays(/^orch: \d+\.\d MiB of output was not shown here, only the screen behind it/);
    await watching.pty.shows(new RegExp(`to read it: orch term transcript\\s+${id}`));
    const read = await sandbox.orch(['term', 'transcript', id, '--format', 'raw']);
    expect(read.stdout).toMatch(/\n300000\r\n300001\r\n/);
    first.line('exit');
    expect(await first.finished()).toMatchObject({ restored: true });
    expect(await watching.finished()).toMatchObject({ restored: true });
  });

  it('lets a host only draw on the terminals of those who watch', async () => {
    const first = await shell();
    const id = await newestSession();
    const watching = term(['attach', id, '--read-only']);
    await watching.pty.shows(/you watch/);
    const begun = watching.pty.output.length;
    const title = String.raw`\033]0;owned\007\033k owned\033\\\302\2352;owned\302\234`;
    const clipboard = String.raw`\033]52;c;b3duZWQ=\007\033P\033]52;c;b3duZWQ=\007\033\\`;
    const modes = String.raw`\033[?1000h\033[?1003h\033[?2004h\033[>1u\033[?1004h\033_owned\033\\\033^owned\033\\`;
    const queries = String.raw`\033[c\033[>c\033[6n\033[?6n\033[5n\033[?2004$p\033[>q\033]10;?\033\\\033]11;?\007\033P$qm\033\\\033P+q544e\033\\\005\033Z`;
    const script = sandbox.path('hostile.bash');
    // In two halves, so that sequences are cut between frames too.
    const halves = 'p() { printf "$1" | (head -c 6; sleep 0.1; cat); }';
    const answers = 'IFS= read -rs -t 1 -d "" answers; printf %s "$answers" | wc -c | sed "s/^/answers /"';
    const all = [title, clipboard, modes, queries].map((text) => `p '${text}'; ${answers}`);
    const rest = String.raw`printf '\033[?1000;1003;1004;2004l\033[<u'; stty echo; echo all drawn`;
    writeFileSync(script, ['stty -echo', halves, ...all, rest].join('\n'));
    first.line(`/bin/bash ${script}`);
    await watching.pty.displays(/all drawn/);
    const shown = watching.pty.output.slice(begun);
    expect(shown).not.toContain('owned');
    expect(shown).not.toMatch(/[\x05\x07\x9d]|\x1b[\]P_^kZ]|\x1b\[[0-9;?>]*(?:[cntq]|\$p|u)|\x1b\[\?[0-9;]*h/);
    expect(shown).not.toContain('keys are not sent');
    // The terminal of the one who types has answered.
    expect(shown).toMatch(/answers [1-9]/);
    first.line('exit');
    expect(await first.finished()).toMatchObject({ restored: true });
    expect(await watching.finished()).toMatchObject({ restored: true });
  });

  it('keeps programs from the clipboard of the one who types, unless it is theirs to set', async () => {
    const copy = String.raw`printf '\033]5'; sleep 0.1; printf '2;c;Y29waWVk\007'; printf '\033]52;c;?\033\\'; echo do''ne`;
    const one = await shell();
    one.line(copy);
    await one.pty.shows(/kept a program from your clipboard; --clipboard copy lets programs set it/);
    await one.pty.shows(/done/);
    expect(one.pty.output).not.toMatch(/\x1b\]5|Y29waWVk\x07/);
    one.line('exit');
    expect(await one.finished()).toEqual({ status: 0, restored: true });

    const other = await shell(['web-01', '--clipboard', 'copy']);
    other.line(copy);
    await other.pty.shows(/done/);
    expect(other.pty.output).toContain('\x1b]52;c;Y29waWVk\x07');
    expect(other.pty.output).not.toContain('\x1b]52;c;?');
    other.line('exit');
    expect(await other.finished()).toEqual({ status: 0, restored: true });
  });

  it('goes through pipes: everything is typed, and every byte of the output comes', async () => {
    const input = 'stty -echo -opost; echo; seq 1 200000; exit 3\n';
    const { status, stdout, stderr } = await sandbox.orch(['term', 'web-01'], { input });
    expect({ status, stderr }).toEqual({ status: 3, stderr: 'The session is over: exit status 3.\n' });
    const numbers = stdout.split('\n').filter((line) => /^\d+$/.test(line));
    expect(numbers.length).toBe(200_000);
    expect(numbers.at(-1)).toBe('200000');
  });

  it('ends a pipe whose shell gets no order to', async () => {
    const { status, stdout } = await sandbox.orch(['term', 'web-01'], { input: "echo a''lone\n" });
    expect(status).toBe(0);
    expect(stdout).toContain('alone');
  });

  itNeeding('vim')('goes on where it was after the orchestrator was killed', async () => {
    const one = await shell();
    const editor = await shell();
    editor.line('vim -u NONE -N');
    await editor.pty.displays(/^~/);
    editor.pty.write('ibefore\x1b');
    await editor.pty.displays(/before/);
    one.line('for i in $(seq 1 400); do echo "line $i"; sleep 0.01; done; echo al\'\'l');
    await one.pty.shows(/line 50\r/);
    await server.stop('SIGKILL');
    const portOf = (address: string) => address.slice(address.lastIndexOf(':') + 1);
    const ports = ['--agent-port', portOf(ready.agent_address), '--api-port', portOf(ready.api_url)];
    ({ server, ready } = await sandbox.serve(ports));
    await one.pty.shows(/\r\nall\r\n/);
    const shown = [...one.pty.output.matchAll(/line (\d+)\r/g)].map(([, number]) => Number(number));
    expect(shown).toEqual(Array.from({ length: 400 }, (_, index) => index + 1));
    one.line('exit 6');
    expect(await one.finished()).toEqual({ status: 6, restored: true });
    editor.pty.write('oafter\x1b');
    await editor.pty.displays(/after/);
    editor.pty.write(':q!\r');
    await editor.pty.displays(/ready>/);
    editor.line('exit 8');
    expect(await editor.finished()).toEqual({ status: 8, restored: true });
  });
});
