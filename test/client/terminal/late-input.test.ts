/** Input that meets a dead connection: all of it arrives, or none of it, and the operator hears of it. */
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { until } from '../../support/orch.js';
import { type ScriptedSession, startTerminalServer, type TerminalServer } from '../../support/terminal-server.js';
import { attach, type Told } from './terminal-client.js';

let server: TerminalServer;
let remote: ScriptedSession;
let skew = 0;

beforeEach(async () => {
  skew = 0;
  server = await startTerminalServer();
  remote = server.session;
  return () => server.stop();
});

const clock = { monotonic: () => performance.now() + skew, now: () => Date.now() + skew };

/** In steps, as a jump would be the sleep of this machine. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    skew += 500;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const type = (told: Told, text: string): void => void told.session.sendInput(Buffer.from(text));

async function connect(options: { readonly queueInput?: boolean } = {}): Promise<Told> {
  const told = await attach(server, { clock, ...options });
  onTestFinished(() => told.session.detach());
  await until(() => told.states.at(-1)?.kind === 'connected', 'it is connected');
  remote.print('$ ');
  await until(() => told.shown.length === 2, 'there is a prompt');
  type(told, 'a');
  await until(() => remote.input.toString() === 'a', 'the first key is there');
  remote.acknowledgeInput();
  await until(() => told.session.inputAge === 0, 'it is acknowledged');
  return told;
}

/** Another connection takes the place of the one that is dead. */
async function comeBack(told: Told): Promise<void> {
  remote.cut();
  await until(() => !remote.connected, 'it is cut');
  remote.deaf = false;
  await until(() => remote.hellos.length === 2 && told.states.at(-1)?.kind === 'connected', 'it is back');
}

describe('input that was typed into a dead connection', () => {
  it('longer than ten seconds ago is dropped as one, with all input behind it, and reported', async () => {
    const told = await connect();
    remote.deaf = true;
    type(told, 'rm -rf /srv');
    await pass(9_000);
    type(told, '/www');
    await pass(1_500);
    type(told, '/old-2014\r');
    await comeBack(told);
    await until(() => told.dropped === 'rm -rf /srv/www/old-2014\r'.length, 'all of it is dropped');
    expect(remote.input.toString()).toBe('a');
    // The end of a line that is still being typed goes with it, up to the Enter that would run it.
    type(told, 'x');
    type(told, 'y\r');
    await until(() => told.dropped === 'rm -rf /srv/www/old-2014\rxy\r'.length, 'that is reported too');
    type(told, 'ls\r');
    await until(() => remote.input.toString() === 'als\r', 'what is typed then arrives');
  });

  it('while it was known to be lost counts too, and Ctrl-C is always meant', async () => {
    const told = await connect();
    remote.deaf = true;
    remote.cut();
    await until(() => told.states.at(-1)?.kind === 'lost', 'the loss is known');
    type(told, 'make ');
    await pass(11_000);
    type(told, 'clean\r');
    remote.deaf = false;
    await until(() => told.dropped === 'make clean\r'.length, 'it is dropped');
    type(told, '\x03');
    await until(() => remote.input.toString() === 'a\x03', 'Ctrl-C arrives');
  });

  it('a short time ago arrives, all of it', async () => {
    const told = await connect();
    remote.deaf = true;
    type(told, 'uptime');
    await pass(8_000);
    type(told, '\r');
    await comeBack(told);
    await until(() => remote.input.toString() === 'auptime\r', 'all of it is there');
    expect(told.dropped).toBe(0);
  });

  it('waits for as long as it takes when that is wanted', async () => {
    const told = await connect({ queueInput: true });
    remote.deaf = true;
    type(told, 'uptime\r');
    await pass(25_000);
    await comeBack(told);
    await until(() => remote.input.toString() === 'auptime\r', 'all of it is there');
    expect(told.dropped).toBe(0);
  });

  it('of which the orchestrator has got the beginning is dropped from there on', async () => {
    const told = await connect();
    type(told, 'ech');
    await until(() => remote.input.toString() === 'aech', 'the beginning is there');
    remote.deaf = true;
    type(told, 'o 1\r');
    await pass(12_000);
    await comeBack(told);
    await until(() => told.dropped === 4, 'the rest is dropped');
    type(told, '\x03');
    type(told, 'ls\r');
    await until(() => remote.input.toString() === 'aech\x03ls\r', 'what is typed then has its place');
  });

  it('is asked for when the connection was only slow, and dropped then too', async () => {
    const told = await connect();
    remote.deaf = true;
    type(told, 'reboot\r');
    await pass(12_000);
    remote.deaf = false;
    const { begun } = remote;
    remote.ask();
    await until(() => told.dropped === 'reboot\r'.length, 'it is dropped');
    expect(remote.begun).toBe(begun + 1);
    expect(remote.input.toString()).toBe('a');
  });

  it('makes the silence known after two seconds', async () => {
    const told = await connect();
    remote.deaf = true;
    type(told, 'x');
    await until(() => told.states.at(-1)?.kind === 'silent', 'it is noticed long before the next ping is due');
    expect(told.session.inputAge).toBeLessThan(9_000);
  });
});
