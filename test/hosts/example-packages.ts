/** Packages of Debian's archive that the examples and the everyday answers are about, and `curl`: one image for all suites of them. */
export const EXAMPLE_PACKAGES: readonly string[] = [
  ...['openssh-server', 'sudo', 'nginx-light', 'logrotate', 'unattended-upgrades', 'prometheus-node-exporter'],
  ...['jq', 'systemd-timesyncd', 'tzdata', 'curl', 'postgresql', 'openssl', 'locales', 'vim', 'cron', 'nftables'],
];
