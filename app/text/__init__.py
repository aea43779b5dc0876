"""What is known of a text without a model: parts, words, numbers, markup, what an answer changed in it. Pure."""
