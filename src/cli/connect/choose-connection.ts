/** Which orchestrator a command speaks to. */
import { type Connection, resolveConnection } from '../../client/connection.js';
import { profilesPath } from '../../client/directories.js';
import { loadProfiles, type Profiles } from '../../client/profiles.js';
import { parseServerUrl, sameServer } from '../../client/server-url.js';
import type { Context } from '../context.js';

/** An address that some profile knows gets that profile's trust and key, without being named. */
export async function chooseConnection({ env, globals }: Context): Promise<Connection> {
  const profiles = await loadProfiles(profilesPath(env));
  const { url, profile, tlsFingerprint, ca, keyFile } = globals;
  const address = url ?? (env.ORCH_URL || undefined);
  const known =
    profile === undefined && !env.ORCH_PROFILE && address !== undefined ? profileOf(profiles, address) : null;
  return resolveConnection({
    flags: {
      url,
      profile: profile ?? known ?? undefined,
      tlsFingerprint,
      ca,
      keyFile,
      allowUnboundLogin: globals.allowUnboundLogin || undefined,
    },
    env,
    profiles,
  });
}

/** The name of the profile of that address, the default one first. */
function profileOf({ byName, standard }: Profiles, address: string): string | null {
  const url = parseServerUrl(address, 'the address');
  const names = Object.keys(byName).sort((a, b) => Number(b === standard) - Number(a === standard));
  return names.find((name) => sameServer(url, parseServerUrl(byName[name]?.url ?? '', `profile ${name}`))) ?? null;
}
