/** `orch ssh-config`: lines for the configuration of OpenSSH. */
import { Fault, shellWord } from '../../kernel/fault.js';
import { defineCommand } from '../define-command.js';
import type { Globals } from '../global-options.js';
import { allAgents } from '../list-pages.js';
import { listSelectorOption } from '../nodes/choose-agents.js';
import { optionalNodesArgument, resolveNodes } from '../nodes/resolve-node.js';
import { linesOf } from '../outcome.js';

export const printSshConfig = defineCommand({
  examples: ['orch ssh-config', 'orch ssh-config > ~/.ssh/orch.conf', 'orch ssh-config -l role=web'],
  detail: [
    'With a Host block for each approved agent, ssh, scp, sftp, rsync, Ansible and editors reach its sshd by its',
    'name. Write them to ~/.ssh/orch.conf, and put "Include orch.conf" at the top of ~/.ssh/config. Options such as',
    '--profile become part of the lines.',
  ],
  access: 'viewer',
  args: { nodes: optionalNodesArgument },
  options: { selector: listSelectorOption },
  run: async ({ api: connect, globals, signal }, { nodes, selector }) => {
    if (nodes.length > 0 && selector !== undefined) {
      throw new Fault('usage', 'NODE names agents, so --selector does not go with it');
    }
    const api = await connect();
    const agents =
      nodes.length > 0
        ? await resolveNodes(api, nodes, { signal })
        : await allAgents(api, { status: 'approved', filter: selector, signal });
    const blocks = agents.flatMap(({ name }) =>
      name === null ? [] : [{ host: name, proxy_command: proxyOf(name, globals) }],
    );
    return {
      body: blocks,
      names: blocks.map(({ host }) => host),
      view: linesOf(blocks.flatMap(({ host, proxy_command: proxy }) => [`Host ${host}`, `  ProxyCommand ${proxy}`])),
    };
  },
});

/** Returns the command, in which OpenSSH replaces %p by the port. It treats each other percent sign as the start of a token. */
function proxyOf(name: string, { url, profile, tlsFingerprint, ca, keyFile, sshAgent }: Globals): string {
  const given = { url, profile, 'tls-fingerprint': tlsFingerprint, ca, 'key-file': keyFile, 'ssh-agent': sshAgent };
  const options = Object.entries(given).flatMap(([flag, value]) =>
    value === undefined ? [] : [value === '' ? `--${flag}` : `--${flag}=${value}`],
  );
  const words = ['orch', ...options, 'ssh-proxy', name].map((word) => shellWord(word).replaceAll('%', '%%'));
  return [...words, '%p'].join(' ');
}
