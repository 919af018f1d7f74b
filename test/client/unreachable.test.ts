/** The hints of an orchestrator that cannot be reached. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { unreachable } from '../../src/client/unreachable.js';

const directory = mkdtempSync(join(tmpdir(), 'orch-units-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
const here = new URL('https://127.0.0.1:4748');

describe('where nothing listens', () => {
  it('the service is started where the orchestrator is one, because files of another user would not be its own', () => {
    const unit = join(directory, 'orch-serve.service');
    writeFileSync(unit, '');
    expect(unreachable(refused, here, [join(directory, 'none'), unit]).hint).toContain('systemctl start orch-serve');
  });

  it('orch serve is named where there is no service', () => {
    expect(unreachable(refused, here, [join(directory, 'none')]).hint).toMatch(/^start "orch serve" here/);
  });

  it('neither is for an orchestrator elsewhere', () => {
    const { hint } = unreachable(refused, new URL('https://orch.example:4748'), [directory]);
    expect(hint).toBe('check the address, and whether "orch serve" runs');
  });
});
