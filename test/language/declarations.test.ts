/** The resources that modules declare on an agent, with what comes with directories beside a module. */
import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { compileModule } from '../../src/language/compile-module.js';
import { declarations } from '../../src/language/declarations.js';
import { parseModule } from '../../src/language/parse-module.js';

const FILES: Readonly<Record<string, string>> = {
  'files/site/': 'd css\nf css/a.css\n',
  'files/site/css/a.css': 'body',
};
const MODULE = `name: web
supports: [{platform: linux}]
resources:
  - directory-unix: {path: /srv/site, source: files/site}
  - file-unix: {path: /etc/motd, content: hello}
`;

it('names the file beside the module that each file of a directory comes from', () => {
  const { definition, diagnostics } = parseModule(MODULE, (path) => {
    const text = FILES[path];
    if (text === undefined) return 'does not exist beside the module';
    return { sha256: createHash('sha256').update(text).digest('hex'), size: text.length, text };
  });
  if (definition === null) throw new Error(JSON.stringify(diagnostics));
  const { declared } = declarations({
    modules: [compileModule({ name: 'web', definition })],
    agent: { node_id: 'a', name: 'web-01', attributes: { platform: 'linux' }, tags: {} },
    secret: () => null,
  });
  const directory = '/resources/0/resource/directory-unix';
  expect(declared.map(({ kind, identity, path, beside }) => [kind, identity, path, beside])).toEqual([
    ['directory-unix', '/srv/site', directory, null],
    ['directory-unix', '/srv/site/css', directory, 'files/site/css'],
    ['file-unix', '/srv/site/css/a.css', directory, 'files/site/css/a.css'],
    ['file-unix', '/etc/motd', '/resources/1/resource/file-unix', null],
  ]);
});
