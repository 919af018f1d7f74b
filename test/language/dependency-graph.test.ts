/** The dependencies in a module, and their reasons. */
import { describe, expect, it } from 'vitest';
import { dependencyGraph } from '../../src/language/dependency-graph.js';
import { parseModule } from '../../src/language/parse-module.js';

function reasonsOf(resources: string): readonly string[] {
  const { definition, diagnostics } = parseModule(`name: web\nsupports: [{}]\nresources:\n${resources}`);
  if (definition === null) throw new Error(JSON.stringify(diagnostics));
  const graph = dependencyGraph(definition);
  return graph.flatMap(({ identities, after }) =>
    after.map(({ to, reasons }) => `${identities.join()} after ${graph[to]?.identities.join()}: ${reasons.join()}`),
  );
}

describe('dependencyGraph', () => {
  it('tells what the module says from what follows by itself', () => {
    const resources = `
  - {id: group, resource: {group-unix: {name: web}}}
  - {resource: {user-unix: {name: web, primary_group: web}}}
  - {resource: {directory-unix: {path: /srv}}}
  - {id: conf, depends_on: [group], resource: {file-unix: {path: /srv/conf}}}
  - {depends_on: [conf], resource: {service-systemd: {name: web, reload_on: [conf]}}}
`;
    expect(reasonsOf(resources)).toEqual([
      'web after web: needs',
      '/srv/conf after web: depends_on',
      '/srv/conf after /srv: lies in',
      'web after /srv/conf: depends_on,reload_on',
    ]);
  });

  it('counts the variants of an entry together, in the order of application', () => {
    const resources = `
  - id: service
    variants:
      - {when: {distro: debian}, resource: {service-systemd: {name: apache2, reload_on: [conf]}}}
      - {when: {}, resource: {service-systemd: {name: httpd, restart_on: [conf]}}}
  - {id: conf, resource: {file-unix: {path: /conf}}}
`;
    expect(reasonsOf(resources)).toEqual(['apache2,httpd after /conf: reload_on,restart_on']);
  });
});
