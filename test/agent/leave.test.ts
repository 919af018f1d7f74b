/** `orch agent leave`: which service is this agent's, and what is left when something fails. systemd itself is in test/hosts/agent.test.ts. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type LeaveOptions, leave, planLeave } from '../../src/agent/leave.js';
import { holdDataDirectory } from '../../src/identity/data-directory.js';
import { Fault } from '../../src/kernel/fault.js';
import { place } from '../support/agent.js';

let root: string;
let dataDir: string;
let unitFile: string;
let asked: string[];

beforeEach(() => {
  root = place();
  dataDir = join(root, 'data');
  unitFile = join(root, 'orch-agent.service');
  asked = [];
  mkdirSync(dataDir);
  writeFileSync(join(dataDir, 'identity.key'), 'key');
  writeFileSync(unitFile, '[Service]\n');
});

interface Seen {
  readonly exec?: string;
  readonly more?: string;
  readonly failing?: string;
}

/** As `systemctl show` prints a unit. */
const options = ({ exec = '/usr/local/bin/orch agent connect h', more = '', failing }: Seen = {}): LeaveOptions => ({
  dataDir,
  unit: { name: 'orch-agent.service', path: unitFile, standardDataDir: dataDir },
  systemctl: async (...args) => {
    asked.push(args[0] ?? '');
    if (args[0] === failing) throw new Error(`systemctl ${failing} failed: boom`);
    return [
      `ExecStart={ path=/x ; argv[]=${exec} ; ignore_errors=no ; start_time=[n/a] ; pid=0 }`,
      'LoadState=loaded',
      `FragmentPath=${unitFile}`,
      more,
    ].join('\n');
  },
});

const faultOf = async (work: Promise<unknown>): Promise<Fault> => {
  const error = await work.catch((thrown: unknown) => thrown);
  if (error instanceof Fault) return error;
  throw new Error('no Fault was thrown');
};

describe('the service of an agent', () => {
  const file = (text: string) => {
    writeFileSync(join(root, 'agent.env'), text);
    return `EnvironmentFiles=${join(root, 'agent.env')} (ignore_errors=no)`;
  };
  it.each<[string, () => Seen]>([
    ['runs it by itself', () => ({})],
    ['waits to be found', () => ({ exec: '/usr/bin/node /opt/orch/orch.js agent' })],
    ['names its directory', () => ({ exec: `orch agent connect h --data-dir ${dataDir}/` })],
    ['names its directory in a variable', () => ({ more: `Environment=A=b ORCH_AGENT_DATA_DIR=${dataDir}` })],
    ['has other variables in a file', () => ({ more: file('ORCHESTRATOR=h\n') })],
  ])('%s', async (_what, seen) => {
    expect(await planLeave(options(seen()))).toMatchObject({ service: 'orch-agent.service', service_kept: null });
    expect(await leave(options(seen()))).toMatchObject({ service: 'orch-agent.service' });
    expect(asked.slice(-3)).toEqual(['show', 'disable', 'daemon-reload']);
    expect([existsSync(dataDir), existsSync(unitFile)]).toEqual([false, false]);
  });

  it.each<[string, () => Seen, RegExp]>([
    ['something else', () => ({ exec: '/usr/bin/orch serve' }), /does not run "orch agent"/],
    ['a program of another name', () => ({ exec: '/opt/torch agent' }), /does not run "orch agent"/],
    ['another directory', () => ({ exec: 'orch agent connect h --data-dir=/srv/a' }), /agent of \/srv\/a$/],
    ['another directory by a variable', () => ({ more: 'Environment="ORCH_AGENT_DATA_DIR=/srv/b"' }), /\/srv\/b$/],
    ['another directory by a file', () => ({ more: file('X=1\nORCH_AGENT_DATA_DIR="/srv/c"\n') }), /\/srv\/c$/],
    ['the agent of another user', () => ({ more: 'User=deploy' }), /agent of user deploy$/],
  ])('is another one when it runs %s: left alone, and said so', async (_what, seen, why) => {
    const left = await leave(options(seen()));
    expect(left.service).toBeNull();
    expect(left.service_kept).toMatch(why);
    expect(asked).toEqual(['show']);
    expect([existsSync(dataDir), existsSync(unitFile)]).toEqual([false, true]);
  });
});

describe('leaving', () => {
  it('changes nothing while an agent runs that the service does not run', async () => {
    const held = holdDataDirectory(dataDir, 'orch agent');
    const fault = await faultOf(leave(options()));
    held.release();
    expect(fault).toMatchObject({ code: 'agent_running' });
    expect(fault.hint).toContain('nothing was changed');
    expect(asked).toEqual(['show']);
    expect([existsSync(join(dataDir, 'identity.key')), existsSync(unitFile)]).toEqual([true, true]);
  });

  it.each([
    ['show', 'nothing was changed', true, true],
    ['disable', 'nothing was deleted', true, true],
    ['daemon-reload', 'the agent is deleted', false, false],
  ])('says what is true when systemctl %s fails', async (failing, hint, hasData, hasUnit) => {
    const fault = await faultOf(leave(options({ failing })));
    expect(fault.message).toBe(`systemctl ${failing} failed: boom`);
    expect(fault.hint).toContain(hint);
    expect([existsSync(join(dataDir, 'identity.key')), existsSync(unitFile)]).toEqual([hasData, hasUnit]);
  });
});
