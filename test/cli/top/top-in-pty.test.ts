/** `orch top` in a real terminal, with a real orchestrator and a real agent. */
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, it } from 'vitest';
import { Pty } from '../../support/pty.js';
import { TerminalFleet } from '../../support/terminal-fleet.js';

let fleet: TerminalFleet;
const open = new Set<Pty>();

beforeAll(async () => {
  fleet = await TerminalFleet.start();
});
afterAll(async () => {
  for (const pty of open) pty.kill();
  await fleet.dispose();
});

const quote = (word: string): string => `'${word}'`;

/** Runs it below a shell with jobs, which compares the settings of the terminal afterwards. */
function startTop(): Pty {
  const { env, root, program } = fleet.sandbox;
  const pty = new Pty(['/bin/bash', '--norc', '-i'], { cwd: root, env: { ...env, PS1: 'PROMPT$ ' } });
  open.add(pty);
  pty.write(`BEFORE=$(stty -g); ${quote(process.execPath)} ${quote(program)} top; echo "STATUS=$?"; `);
  pty.write('[ "$BEFORE" = "$(stty -g)" ] && echo SAME-TERMINAL\n');
  return pty;
}

it('opens an agent and a terminal on it, comes back, and gives the terminal back', async () => {
  const pty = startTop();
  await pty.displays(/^> web-01 +up/);
  pty.write('\r');
  await pty.displays(/^orch top {2}agent web-01/);
  await pty.displays(/^Attributes/);
  pty.write('t');
  await pty.displays(/this session is recorded/);
  pty.write('echo in-the-$((40+2))-shell\r');
  // Behind the prompt when the line was typed before it.
  await pty.displays(/in-the-42-shell/);
  pty.write('exit\r');
  await pty.displays(/the terminal on web-01 is closed/);
  pty.resize(120, 40);
  pty.write('\x1b');
  await pty.displays(/^> web-01 +up/);
  pty.write('q');
  await pty.displays(/^STATUS=0/);
  await pty.displays(/^SAME-TERMINAL/);
});

it('stops at Ctrl-Z, and goes on at fg', async () => {
  const pty = startTop();
  await pty.displays(/^> web-01 +up/);
  pty.write('\x1a');
  await pty.displays(/Stopped/);
  pty.write('fg\n');
  await pty.displays(/^> web-01 +up/);
  pty.write('q');
  await pty.displays(/^PROMPT\$ ?$/);
});

it('gives the terminal back at SIGTERM', async () => {
  const pty = startTop();
  await pty.displays(/^> web-01 +up/);
  const child = execFileSync('pgrep', ['-P', `${pty.pid}`], { encoding: 'utf8' });
  process.kill(Number(child.trim()), 'SIGTERM');
  await pty.displays(/^STATUS=143/);
  await pty.displays(/^SAME-TERMINAL/);
});
