"""A plugin of pytest: `import libipld` gives `wireproof.libipld`."""

import wireproof.compat

wireproof.compat.install()
