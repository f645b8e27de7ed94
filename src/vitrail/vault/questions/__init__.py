"""The questions that can be asked, one file each, with the bound of what a row contributes and its proof."""
