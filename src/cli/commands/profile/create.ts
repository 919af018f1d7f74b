/** `orch profile create`. */
import { profilesPath } from '../../../client/directories.js';
import { loadProfiles, saveProfiles, withProfile } from '../../../client/profiles.js';
import { parseServerUrl, urlText } from '../../../client/server-url.js';
import { Fault } from '../../../kernel/fault.js';
import { argument } from '../../argument.js';
import { defineCommand } from '../../define-command.js';
import { lines, stack } from '../../view.js';
import { givenMembers, profileOptions } from './profile-options.js';
import { profileBody, profileFields } from './profile-view.js';

export const command = defineCommand({
  examples: [
    'orch profile create home --url https://orch.home:4748',
    'orch profile create work --url https://orch.example:4748 --tls-fingerprint 9f86d081…',
  ],
  detail: ['Without --tls-fingerprint or --ca the first connection shows the certificate and asks.'],
  access: 'local',
  connection: true,
  args: { name: argument('NAME', 'what to call it') },
  options: profileOptions,
  run: async ({ env, globals }, { name, ...given }) => {
    if (globals.url === undefined)
      throw new Fault('usage', 'a profile needs an address', { hint: 'add --url https://HOST:4748' });
    const profiles = await loadProfiles(profilesPath(env));
    if (Object.hasOwn(profiles.byName, name)) {
      throw new Fault('usage', `there is a profile "${name}" already`, {
        hint: `change it with: orch profile update ${name}`,
      });
    }
    const profile = { url: urlText(parseServerUrl(globals.url, '--url')), ...givenMembers(globals, given) };
    const changed = { ...withProfile(profiles, name, profile), standard: profiles.standard ?? name };
    await saveProfiles(changed);
    const told =
      changed.standard === name ? `${name} is the default now.` : `Make it the default with: orch profile use ${name}`;
    return { body: profileBody(changed, name), names: [name], view: stack(profileFields(name, profile), lines(told)) };
  },
});
