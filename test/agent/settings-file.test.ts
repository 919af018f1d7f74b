/** The agent's YAML file: what it may hold, and what happens when it changes while the agent runs. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { AgentSettingsFile } from '../../src/agent/settings-file.js';
import { Fault } from '../../src/kernel/fault.js';
import type { Logger } from '../../src/kernel/logger.js';
import { AGENT_DEFAULTS, AGENT_SETTINGS, type AgentSettings } from '../../src/settings/agent.js';
import { jsonSchemaOf } from '../../src/settings/setting.js';

let directory: string;
let path: string;
let logged: string[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'orch-settings-'));
  path = join(directory, 'agent.yaml');
  logged = [];
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const note = (level: string) => (message: string, fields?: object) =>
  void logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
const logger: Logger = {
  debug: note('debug'),
  info: note('info'),
  warn: note('warn'),
  error: note('error'),
  child: () => logger,
};

const open = (isOptional = false) => AgentSettingsFile.open({ path, isOptional, logger });
const refusal = (text: string) => {
  writeFileSync(path, text);
  return open().then(
    () => {
      throw new Error('it was taken');
    },
    (error: unknown) => error as Fault,
  );
};

describe('the file of the agent', () => {
  it('gives the standard where it says nothing or is not there', async () => {
    expect((await open(true)).settings).toEqual(AGENT_DEFAULTS);
    writeFileSync(path, '# nothing\n');
    expect((await open()).settings).toEqual(AGENT_DEFAULTS);
    writeFileSync(path, 'metrics:\n# enabled: false\nremote_terminal: ~\n');
    expect((await open()).settings).toEqual(AGENT_DEFAULTS);
    writeFileSync(path, 'script_timeout: 30\n');
    expect((await open()).settings).toMatchObject({ script_timeout: 30 });
  });

  it('is refused with every line that is wrong, and when a named one is not there', async () => {
    expect((await refusal('metrics: true\n')).message).toMatch(/:1:1: metrics must hold settings of its own/);
    const fault = await refusal('script_timeout: 0\nscript_timout: 5\n');
    expect(fault).toBeInstanceOf(Fault);
    expect(fault.code).toBe('invalid_config');
    expect(fault.message).toContain(`${path}:1:1: script_timeout:`);
    expect(fault.message).toContain(`${path}:2:1: unknown key "script_timout"`);
    expect(fault.hint).toBe('orch agent config-schema prints every key with its type');
    rmSync(path);
    await expect(open()).rejects.toThrow(`cannot read the configuration file ${path}`);
  });

  it('is read again when it has changed, by whatever means, and an invalid one changes nothing', async () => {
    writeFileSync(path, 'script_timeout: 30\n');
    const file = await open();
    const seen: AgentSettings[] = [];
    const stop = new AbortController();
    const changed = new Promise<void>((resolve) =>
      file.subscribe((settings) => {
        seen.push(settings);
        resolve();
      }),
    );
    file.watch(stop.signal);
    writeFileSync(`${path}.new`, 'script_timeout: 31\n');
    renameSync(`${path}.new`, path);
    await changed;
    stop.abort();
    expect(seen).toMatchObject([{ script_timeout: 31 }]);
    writeFileSync(path, 'script_timeout: never\n');
    await file.reload();
    expect(file.settings).toMatchObject({ script_timeout: 31 });
    expect(logged.at(-1)).toContain('error the configuration was not taken over, the old one stays');
  });

  it('changes nothing either when something else stands in its place', async () => {
    writeFileSync(path, 'script_timeout: 30\n');
    const file = await open();
    rmSync(path);
    mkdirSync(path);
    await file.reload();
    expect(logged).toHaveLength(1);
    rmSync(path, { recursive: true });
    symlinkSync(path, path);
    await file.reload();
    expect(logged.at(-1)).toContain('error the configuration was not taken over, the old one stays');
    expect(file.settings).toMatchObject({ script_timeout: 30 });
    await expect(open(true)).rejects.toThrow(`cannot read the configuration file ${path}`);
    rmSync(path);
    writeFileSync(path, '');
    truncateSync(path, 2 ** 40);
    await file.reload();
    expect(logged.at(-1)).toContain('it is larger than 262144 bytes');
    writeFileSync(path, 'script_timeout: 31\n');
    await file.reload();
    expect(file.settings).toMatchObject({ script_timeout: 31 });
  });

  it('is a regular file or a link to one', async () => {
    writeFileSync(join(directory, 'real.yaml'), 'script_timeout: 30\n');
    symlinkSync('real.yaml', path);
    expect((await open()).settings).toMatchObject({ script_timeout: 30 });
    rmSync(path);
    symlinkSync('/dev/null', path);
    await expect(open(true)).rejects.toThrow('it is a pipe or a device, not a file');
    rmSync(path);
    mkdirSync(path);
    await expect(open(true)).rejects.toThrow('it is a directory, not a file');
    rmSync(path, { recursive: true });
    execFileSync('mkfifo', [path]);
    const writer = spawn('sh', ['-c', 'echo "script_timeout: 31" >"$0"', path]);
    onTestFinished(() => void writer.kill());
    await expect(open()).rejects.toThrow('it is a pipe or a device, not a file');
  });

  it('has a schema with a description of every key', () => {
    const schema = jsonSchemaOf(AGENT_SETTINGS, { id: 'urn:x', title: 'x' }) as {
      properties: Record<string, { description?: string }>;
    };
    const keys = ['metrics', 'facts', 'remote_terminal', 'forward', 'ssh_proxy', 'copy', 'script_timeout'];
    expect(Object.keys(schema.properties).sort()).toEqual(keys.sort());
  });
});
