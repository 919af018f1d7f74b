/** The module of the quickstart: it writes only below one directory. */

/** YAML text; `site` is an absolute path whose parent exists. */
export const demoModule = (site: string): string => `# A module says how things should be; orch makes them so.
name: hello
supports:
  - platform: linux
  - platform: macos
templates:
  - id: motd
    content: |
      This is \${{ agent.name }}, and its role is \${{ tags.role }}.
resources:
  - id: site
    resource:
      directory-unix:
        path: ${JSON.stringify(site)}
        mode: "0755"
  - depends_on: [site]
    resource:
      file-unix:
        path: ${JSON.stringify(`${site}/motd`)}
        template: motd
  - depends_on: [site]
    resource:
      file-unix:
        path: ${JSON.stringify(`${site}/settings.conf`)}
        content: |
          colour = green
          retries = 3
        mode: "0600"
`;
