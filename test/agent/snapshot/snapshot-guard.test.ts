/** The service beside the agent, with real snapshots and no agent at all. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bootTime } from '../../../src/agent/snapshot/boot-time.js';
import { PathSaver } from '../../../src/agent/snapshot/path-saver.js';
import { watchSnapshot } from '../../../src/agent/snapshot/snapshot-guard.js';
import {
  makeSnapshotDirectory,
  readSnapshot,
  type SnapshotRecord,
  snapshotDirectory,
  writeSnapshot,
} from '../../../src/agent/snapshot/snapshot-record.js';
import { holdDataDirectory } from '../../../src/identity/data-directory.js';
import { host, place, runId } from '../../support/agent.js';
import { until } from '../../support/until.js';

async function snapshotOf(path: string, change: Partial<SnapshotRecord>): Promise<string> {
  const dataDir = place();
  makeSnapshotDirectory(dataDir);
  const [saved] = await new PathSaver({ dataDir }).save([path]);
  if (typeof saved !== 'object') throw new Error('it is not saved');
  const item = { kind: 'file-unix', identity: path, key: path, action: 'update', saved, reason: null };
  writeSnapshot(dataDir, {
    format: 1,
    run_id: runId(1),
    state: 'applying',
    confirm_secs: 60,
    keeps: false,
    deadline: null,
    why: null,
    items: [item],
    restored: null,
    ...change,
  });
  return dataDir;
}

function watch(dataDir: string, pace = { look: 5, absent: 10, hung: 60_000 }) {
  const [asked, warnings]: [string[], string[]] = [[], []];
  const ended = watchSnapshot({
    dataDir,
    systemctl: async (...words: readonly string[]) => {
      asked.push(words.join(' '));
      return '';
    },
    createHost: host,
    warn: (message) => warnings.push(message),
    pace,
  });
  return { asked, warnings, ended };
}

describe('the service beside the agent', () => {
  it('restores a snapshot when no agent runs, and starts the agent', async () => {
    const path = join(place(), 'f');
    writeFileSync(path, 'before');
    const dataDir = await snapshotOf(path, {});
    writeFileSync(path, 'after');
    const { asked, warnings, ended } = watch(dataDir);
    await ended;
    expect(readFileSync(path, 'utf8')).toBe('before');
    expect(readSnapshot(dataDir)).toMatchObject({ state: 'restored', restored: { restored: 1 } });
    expect(asked[0]).toBe('stop orch-agent.service');
    expect(asked).toContain('start orch-agent.service');
    expect(warnings).toEqual([]);
  });

  it('restores it even if the disk refuses the record', async () => {
    const path = join(place(), 'f');
    writeFileSync(path, 'before');
    const dataDir = await snapshotOf(path, {});
    writeFileSync(path, 'after');
    mkdirSync(join(snapshotDirectory(dataDir), 'record.json.new'));
    const { warnings, asked, ended } = watch(dataDir);
    await ended;
    expect(readFileSync(path, 'utf8')).toBe('before');
    expect(warnings).toHaveLength(2);
    expect(warnings[0]).toContain('the record of the snapshot cannot be written');
    expect(asked).toContain('start orch-agent.service');
    expect(readSnapshot(dataDir)?.state).toBe('applying');
  });

  it('gives an agent that runs its time after a restart of the machine', async () => {
    const path = join(place(), 'f');
    const dataDir = await snapshotOf(path, {
      state: 'awaiting',
      deadline: { boot: 'another', at: bootTime().at - 3_600_000 },
    });
    writeFileSync(path, 'after');
    const agent = holdDataDirectory(dataDir, 'orch agent');
    let looks = 0;
    const { asked, ended } = watch(dataDir, {
      get look() {
        looks += 1;
        return 5;
      },
      absent: 10,
      hung: 3_600_000,
    });
    await until(() => looks > 3, 'the service has looked several times');
    expect(asked).toEqual([]);
    expect(existsSync(path)).toBe(true);
    agent.release();
    await ended;
    expect(existsSync(path)).toBe(false);
  });
});
