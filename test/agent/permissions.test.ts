/** What an agent reports of its settings about operators. */
import { expect, it } from 'vitest';
import { permissionsOf } from '../../src/agent/permissions.js';
import { AGENT_DEFAULTS, type AgentSettings } from '../../src/settings/agent.js';

const of = (settings: Partial<AgentSettings>) => permissionsOf({ ...AGENT_DEFAULTS, ...settings });

it('permits nothing by default', () => {
  expect(of({})).toEqual({
    permits_terminal: 'no',
    permits_forward: 'no',
    permits_ssh_proxy: 'no',
    permits_copy: 'no',
  });
});

it('names the paths of copies by direction', () => {
  expect(of({ 'copy.read': ['/var/log'] }).permits_copy).toBe('read /var/log');
  expect(of({ 'copy.read': ['/var/log', '/etc'], 'copy.write': ['/srv'] }).permits_copy).toBe(
    'read /var/log /etc, write /srv',
  );
  const many = Array.from({ length: 200 }, (_, at) => `/srv/${at}`);
  const { permits_copy: copy } = of({ 'copy.read': many, 'copy.write': many });
  expect(copy).toMatch(/^read \/srv\/0 .* and \d+ more, write \/srv\/0 .* and \d+ more$/);
  expect(copy.length).toBeLessThanOrEqual(256);
});

it('names the user of terminals, and no user while they are off', () => {
  expect(of({ 'remote_terminal.enabled': true }).permits_terminal).toBe('yes');
  expect(of({ 'remote_terminal.enabled': true, 'remote_terminal.user': 'ada' }).permits_terminal).toBe('as ada');
  expect(of({ 'remote_terminal.user': 'ada' }).permits_terminal).toBe('no');
});

it.each([
  [['localhost:22'], 'localhost:22'],
  [['localhost:*', '/run/docker.sock'], 'localhost:* /run/docker.sock'],
  [Array.from({ length: 100 }, (_, at) => `h${at}:80`), /^h0:80 h1:80 .* h\d\d:80 and \d\d more$/],
  [[`/${'x'.repeat(280)}`, 'b:1'], '2 targets'],
])('names as many targets as fit: %j', (targets, expected) => {
  const { permits_forward: forward, permits_ssh_proxy: proxy } = of({
    'forward.targets': targets,
    'ssh_proxy.targets': targets,
  });
  expect(forward).toMatch(expected);
  expect(forward.length).toBeLessThanOrEqual(256);
  expect(proxy).toBe(forward);
  // The number of the others and the shown ones are all of them.
  const shown = / and (\d+) more$/.exec(forward);
  if (shown) expect(forward.slice(0, shown.index).split(' ').length + Number(shown[1])).toBe(targets.length);
});
