/** Property lists for hostile values, the answers of real versions of macOS, and waiting for launchd to let go of a service. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { validator } from '../../src/kernel/validator.js';
import { serviceLaunchd } from '../../src/resources/service-launchd.js';
import { waitUntilGone } from '../../src/resources/services/launchd-plan.js';
import { plistText } from '../../src/resources/services/launchd-plist.js';
import { parseDisabled, parseList } from '../../src/resources/services/launchd-state.js';
import { FakeHost, resultOf } from '../support/resources.js';

const { problems } = validator(serviceLaunchd.schema);
type Body = Parameters<typeof serviceLaunchd.check>[0];
const isAccepted = (body: Body) => problems(body).length === 0 && serviceLaunchd.check(body).length === 0;

const ENTITIES: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>' };

/** The elements of a property list, which is what is left of it between the tags. */
function elements(text: string): readonly string[] {
  const [, body = ''] = /<plist version="1.0">\n([\s\S]*)<\/plist>\n$/.exec(text) ?? [];
  const found = [...body.matchAll(/<(key|string)>([^<>]*)<\/\1>|<\/?(?:dict|array|true|false)\/?>/g)];
  expect(body.replace(/<(key|string)>[^<>]*<\/\1>|<\/?(?:dict|array|true|false)\/?>/g, '').trim()).toBe('');
  return found.map(([tag, , inner]) => inner?.replace(/&[a-z]+;/g, (entity) => ENTITIES[entity] ?? '?') ?? tag);
}

const hostile = fc.string({
  unit: fc.oneof(fc.constantFrom('<', '>', '&', '"', "'", '-', ']', '\n', '\t', ' ', '</string>', '-->'), fc.string()),
});

describe('a property list', () => {
  it('brings every value back as it was given', () => {
    fc.assert(
      fc.property(
        fc.array(hostile, { minLength: 1 }),
        fc.dictionary(hostile, hostile),
        hostile,
        (args, environment, about) => {
          const body: Body = { name: 'x', program_arguments: args, environment, description: about };
          fc.pre(isAccepted(body));
          const text = plistText(body);
          const variables = Object.entries(environment).sort(([a], [b]) => (a < b ? -1 : 1));
          expect(elements(text)).toEqual([
            ...['<dict>', 'Label', 'x', 'ProgramArguments', '<array>', ...args, '</array>'],
            ...['EnvironmentVariables', '<dict>', ...variables.flat(), '</dict>', '</dict>'],
          ]);
          const head = text.slice(0, text.indexOf('<plist version="1.0">\n'));
          for (const [, inner = ''] of head.matchAll(/<!-- ([\s\S]*?) -->/g)) expect(inner).not.toMatch(/--|-$/);
        },
      ),
    );
  });
});

describe('what launchd says', () => {
  it('is read in the words of macOS 12 and of macOS 13 and later', () => {
    const old = 'disabled services = {\n\t"com.apple.ftpd" => true\n\t"com.apple.screensharing" => false\n}\n';
    const young = 'disabled services = {\n\t"com.apple.ftpd" => disabled\n\t"com.docker.helper" => enabled\n}\n';
    expect([...parseDisabled(old)]).toEqual([
      ['com.apple.ftpd', true],
      ['com.apple.screensharing', false],
    ]);
    expect([...parseDisabled(young)]).toEqual([
      ['com.apple.ftpd', true],
      ['com.docker.helper', false],
    ]);
    const more = `${old}login item associations = {\n\t"version.com.docker.helper" => "64133"\n}\n`;
    expect([...parseDisabled(more).keys()]).toEqual(['com.apple.ftpd', 'com.apple.screensharing']);
  });

  it('tells what is loaded and what runs', () => {
    const list =
      'PID\tStatus\tLabel\n-\t0\tcom.apple.parentalcontrols.check\n297\t0\tcom.apple.Finder\n-\t-9\tcom.vix.cron\n';
    expect([...parseList(list)]).toEqual([
      ['com.apple.parentalcontrols.check', null],
      ['com.apple.Finder', 297],
      ['com.vix.cron', null],
    ]);
  });

  it('is reported with a failure', async () => {
    const printed =
      'system/x = {\n\tactive count = 0\n\tpath = /Library/LaunchDaemons/x.plist\n\ttype = LaunchDaemon\n\tstate = not running\n\n\truns = 1\n\tlast exit code = 78: EX_CONFIG\n\n\tresource coalition = {\n\t\tstate = active\n\t}\n}\n';
    const host = new FakeHost({ commands: { 'launchctl print system/x': printed } });
    const failure = resultOf({ code: 5, stderr: 'Bootstrap failed: 5: Input/output error\n' });
    const step = { do: 'run', command: { argv: ['launchctl', 'bootstrap', 'system', '/x.plist'] } } as const;
    expect(await serviceLaunchd.explain?.(host, { name: 'x' }, step, failure)).toEqual({
      code: 'service_failed',
      message:
        'launchctl ended with status 5: Bootstrap failed: 5: Input/output error\nx: state = not running, last exit code = 78: EX_CONFIG',
    });
  });
});

describe('waiting until launchd has let go', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'orch-launchd-'));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  /** A launchctl that knows the service for so many looks. */
  const wait = (looks: number) => {
    const launchctl = `#!/bin/sh\necho "$*" >>${directory}/calls\n[ "$(wc -l <${directory}/calls)" -le ${looks} ]\n`;
    writeFileSync(join(directory, 'launchctl'), launchctl, { mode: 0o755 });
    writeFileSync(join(directory, 'sleep'), '#!/bin/sh\n', { mode: 0o755 });
    const { command } = waitUntilGone('org.example.web');
    const [program, ...args] = command.argv;
    const env = { PATH: `${directory}:/usr/bin:/bin` };
    return spawnSync(program, args, { input: command.input ?? '', env, encoding: 'utf8', timeout: 20_000 });
  };

  it('ends when the service is gone', () => {
    expect(wait(3)).toMatchObject({ status: 0, stderr: '' });
    expect(wait(0)).toMatchObject({ status: 0 });
  });

  it('does not wait for ever', () => {
    expect(wait(1000)).toMatchObject({
      status: 1,
      stderr: 'launchd has not let go of system/org.example.web after 60 seconds\n',
    });
  });
});
