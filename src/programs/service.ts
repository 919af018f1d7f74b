/** Services of systemd on this host: installation and removal of `orch serve` and `orch agent`. */

/** State of this host that `orch serve install` finds before it asks anything. */
export interface ServeInstallPlan {
  /** True once the service has a store, and so an operator. */
  readonly hasStore: boolean;
  /** Names and addresses under which others may reach this host, the likeliest first. */
  readonly addresses: readonly string[];
  /** Settings of the configuration file that the command asks about; undefined where the file has none. */
  readonly settings: ServeAddresses;
  readonly configFile: string;
}

/** Addresses of an orchestrator, as its settings name them. */
export interface ServeAddresses {
  readonly api_host: string | undefined;
  readonly agent_host: string | undefined;
  readonly advertised_host: string | undefined;
}

export interface ServeInstallRequest {
  readonly settings: ServeAddresses;
  /** First operator; null when there is one. */
  readonly bootstrap: { readonly publicKey: string; readonly username: string } | null;
}

/** A service that runs. */
export interface InstalledService {
  readonly unit: string;
  /** Path of the unit file. */
  readonly unit_file: string;
}

export interface InstalledServe extends InstalledService {
  readonly api_url: string;
  /** URL of the API on this host itself. */
  readonly local_url: string;
  readonly agent_address: string;
  readonly tls_fingerprint: string | null;
  readonly public_key: string;
}

export interface AgentInstallRequest {
  /** `HOST` or `HOST:PORT`; undefined to wait for discovery. */
  readonly target: string | undefined;
  readonly token: string | undefined;
  readonly orchestratorKey: string | undefined;
  readonly trustOnFirstUse: boolean;
  readonly hostname: string | undefined;
  /** True to allow terminals, false to forbid them; undefined leaves the settings as they are. */
  readonly terminals: boolean | undefined;
}

export interface InstalledAgent extends InstalledService {
  readonly node_id: string;
  readonly orchestrator: string | null;
  /** State of the connection: `docs/protocols/agent-link.md`. */
  readonly link: string;
  readonly last_error: string | null;
  readonly hint: string | null;
}

export interface UninstalledService {
  readonly unit: string;
  /** Path of the unit that was stopped; null if there was none. */
  readonly unit_file: string | null;
  /** Directories and files that stay. */
  readonly kept: readonly string[];
}

/** Services of this host. Each throws `service_failed`, `permission_denied` for other users than root, or `unsupported_on_platform`. */
export interface ServicePrograms {
  planServe(): Promise<ServeInstallPlan>;
  /** Tells if this host finds no address of a name. */
  isUnknownName(host: string): Promise<boolean>;
  installServe(request: ServeInstallRequest): Promise<InstalledServe>;
  uninstallServe(): Promise<UninstalledService>;
  installAgent(request: AgentInstallRequest): Promise<InstalledAgent>;
  uninstallAgent(options: { readonly purge: boolean }): Promise<UninstalledService>;
}
