/** A plan does not fail for what an earlier resource of the same plan will bring. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { plan } from '../../../src/agent/converge.js';
import type { DesiredResource } from '../../../src/resources/desired.js';
import { clock, content, directory, file, summaryOf } from '../../support/agent.js';
import { type Facts, FakeHost } from '../../support/resources.js';

/** A machine whose package index does not know `ngimx`. */
const { facts } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../resources/cases/package-apt/unknown.json'), 'utf8'),
) as { facts: Facts };

const ngimx: DesiredResource = { ...file('ngimx'), kind: 'package-apt', body: { name: 'ngimx' } };
const planned = async (...resources: readonly DesiredResource[]) =>
  summaryOf((await plan(content(resources), new FakeHost(facts), { clock })).results);

describe('a plan with a package that the index does not know', () => {
  it('fails, also with files before it that bring no packages', async () => {
    expect(await planned(ngimx)).toEqual(['ngimx none failed package_unknown']);
    expect(await planned(file('/etc/motd'), ngimx)).toEqual([
      'motd create pending',
      'ngimx none failed package_unknown',
    ]);
  });

  it.each(['/etc/apt/sources.list.d/ngimx.list', '/etc/apt/keyrings/ngimx.gpg'])(
    'does not fail when %s is still to be made',
    async (path) => {
      expect((await planned(file(path), ngimx)).at(-1)).toBe('ngimx create pending');
    },
  );

  it('does not fail for an owner or a directory that the package will bring', async () => {
    const absent = { type: 'absent', parent: 'absent' } as const;
    const host = new FakeHost({ ...facts, paths: { '/etc/ngimx/x.conf': absent } });
    const resources = [
      file('/etc/apt/sources.list.d/ngimx.list'),
      ngimx,
      file('/etc/ngimx/x.conf', { content: '', owner: 'ngimx' }),
    ];
    const { results } = await plan(content(resources), host, { clock });
    expect(summaryOf(results).at(-1)).toBe('x.conf create pending');
  });
});

describe('a plan with a file inside of something that an earlier resource makes', () => {
  const absent = { type: 'absent', parent: 'absent' } as const;
  const inside = async (outer: DesiredResource) => {
    const paths = { '/srv/a': { type: 'absent', parent: 'directory' }, '/srv/a/b': absent } as const;
    const { results } = await plan(content([outer, file('/srv/a/b')]), new FakeHost({ paths }), { clock });
    return results.at(-1)?.result;
  };

  it('does not fail when that is a directory', async () => {
    expect(await inside(directory('/srv/a'))).toMatchObject({ status: 'pending', error: null });
  });

  it('fails as the apply will when that is a file', async () => {
    const message = '/srv/a is not a directory, so nothing can lie in it';
    expect(await inside(file('/srv/a'))).toMatchObject({
      status: 'failed',
      error: { code: 'parent_missing', message },
    });
  });
});
