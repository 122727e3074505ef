"""Our own policies, `policy.meshwright.dev`: what no other mesh's kinds say."""
