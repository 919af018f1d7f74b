/** Eight everyday jobs are said in few lines, without a mistake or a warning. */
import { describe, expect, it } from 'vitest';
import { renderDiagnostic } from '../../src/language/diagnostic.js';
import { parseModule } from '../../src/language/parse-module.js';
import { resolve } from '../../src/language/resolve.js';
import { eightJobs } from '../support/eight-jobs.js';

/** Lines that another tool's users would find acceptable; it was 262 before loops and the kinds of today. */
const MOST_LINES = 110;
const DEBIAN = {
  node_id: '0'.repeat(32),
  name: 'web-01',
  attributes: { platform: 'linux', distro: 'debian', init_system: 'systemd', arch: 'x86_64' },
  tags: {},
};
const anyFile = () => ({ sha256: '0'.repeat(64), size: 1 });

describe('eight everyday jobs', () => {
  it(`take at most ${MOST_LINES} lines together`, () => {
    const lines = [...eightJobs.values()].flatMap((text) => text.split('\n').filter((line) => line.trim() !== ''));
    expect(eightJobs.size).toBe(8);
    expect(lines.length).toBeLessThanOrEqual(MOST_LINES);
    // Lines that another would break do not count as one.
    expect(lines.filter((line) => line.length > 130)).toEqual([]);
  });

  it.each([...eightJobs])('%s becomes resources of a Debian', (name, source) => {
    const { definition, diagnostics } = parseModule(source, anyFile);
    expect(diagnostics.map((one) => renderDiagnostic(one, { file: name, source }))).toEqual([]);
    if (definition === null) throw new Error('no module');
    expect(definition.name).toBe(name);
    const { resources, warnings } = resolve({
      modules: [{ name, definition }],
      agent: DEBIAN,
      secret: () => ({ value: 'x', tag: '0000' }),
    });
    expect(warnings).toEqual([]);
    expect(resources.length).toBeGreaterThan(1);
  });
});
