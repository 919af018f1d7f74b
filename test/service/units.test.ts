import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { agentUnit, serveUnit } from '../../src/service/units.js';
import { isInstalled } from '../support/is-installed.js';

const execStart = (unit: string) => /^ExecStart=(.*)$/m.exec(unit)?.[1];

describe('the units', () => {
  it('start the command with its words, quoted as systemd reads them', () => {
    expect(execStart(agentUnit(['/usr/bin/orch']))).toBe('/usr/bin/orch agent');
    expect(execStart(agentUnit(['/opt/my node/bin/node', '/opt/50%/$orch.js'], ['connect', '[::1]:4747']))).toBe(
      '"/opt/my node/bin/node" /opt/50%%/$$orch.js agent connect "[::1]:4747"',
    );
    expect(execStart(agentUnit(['/usr/bin/orch'], ['--hostname', 'a"b\\c']))).toBe(
      '/usr/bin/orch agent --hostname "a\\"b\\\\c"',
    );
    expect(execStart(serveUnit(['/usr/bin/orch']))).toMatch(/^\/usr\/bin\/orch serve --data-dir \/var\/lib\/orch /);
  });

  it.skipIf(!isInstalled('systemd-analyze'))('are valid for systemd (skipped without systemd-analyze)', () => {
    const directory = mkdtempSync(join(tmpdir(), 'orch-units-'));
    try {
      const units = [
        ['orch-serve.service', serveUnit(['/bin/true'])],
        ['orch-agent.service', agentUnit(['/bin/true'], ['connect', '[fe80::1]:4747'])],
      ] as const;
      for (const [name, text] of units) {
        const path = join(directory, name);
        writeFileSync(path, text);
        const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', path], { encoding: 'utf8' });
        expect(stderr.split('\n').filter((line) => line.includes(directory) || line.includes(name))).toEqual([]);
      }
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
