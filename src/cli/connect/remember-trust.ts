/** Writes an accepted certificate into the profiles. */
import type { Connection } from '../../client/connection.js';
import { profilesPath } from '../../client/directories.js';
import { loadProfiles, type Profiles, saveProfiles, withProfile } from '../../client/profiles.js';
import { hostOf, urlText } from '../../client/server-url.js';
import type { Env } from '../context.js';

/** Adds the pin to the connection's profile, or makes one: the default, when there is none. Gives its name. */
export async function rememberTrust(env: Env, { profile, url }: Connection, pin: string): Promise<string> {
  const profiles = await loadProfiles(profilesPath(env));
  const name = profile ?? freeName(profiles, hostOf(url));
  const before = profiles.byName[name];
  const changed = withProfile(profiles, name, { url: urlText(url), ...before, tls_fingerprint: pin });
  await saveProfiles({ ...changed, standard: profiles.standard ?? name });
  return name;
}

function freeName({ byName }: Profiles, host: string): string {
  const base =
    host
      .replace(/[^A-Za-z0-9._-]/g, '-')
      .replace(/^[^A-Za-z0-9]+/, '')
      .slice(0, 56) || 'orchestrator';
  let name = base;
  for (let number = 2; Object.hasOwn(byName, name); number += 1) name = `${base}-${number}`;
  return name;
}
