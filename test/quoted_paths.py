# SPDX-License-Identifier: Apache-2.0
"""lit's format of tests in which each path is one quoted word.

lit replaces %t in a RUN line by the path itself, so that a folder with a space would make two words of it. Here, %s, %S
and %t become what shlex.quote makes of the path; lit.cfg.py does the same with the paths of the build. Such a word
stays one word beside other text (`%t/*.csv`, `--out=%t`), but not within quotes: test/style/quoted_paths.test refuses
those. A module, since lit sends the format to its processes by name."""

import os
import shlex

import lit.formats
import lit.TestRunner


class QuotedPaths(lit.formats.ShTest):
    def execute(self, test, lit_config):
        source, base = test.getSourcePath(), lit.TestRunner.getTempPaths(test)[1]
        own = [("%s", source), ("%S", os.path.dirname(source)), ("%t", base + ".tmp")]
        # They come after those of the configuration, some of which begin with the same letter: %src_root, %tools.
        substitutions = [*test.config.substitutions, *((name, shlex.quote(path)) for name, path in own)]
        return lit.TestRunner.executeShTest(test, lit_config, False, substitutions)
