"""What estimators and saved models answer alike: each file holds the methods of one kind of question.

The methods only pass a call on; the packages that they name compute the answers.
"""

from nae.tables.answers.decides import Decides
from nae.tables.answers.doubts import Doubts
from nae.tables.answers.explains import Explains
from nae.tables.answers.proves import Proves
from nae.tables.answers.reaches import Reaches
from nae.tables.answers.watches import Watches

__all__ = ["Answers"]


class Answers(Explains, Proves, Decides, Doubts, Watches, Reaches):
    """All questions that a model answers from its tables."""
