"""Who asks, how often, and a record of it.

``gate`` is the one door for the web layer. Behind it: ``tokens`` (secrets that the owner hands out), ``sessions`` (somebody
signed in on a page), ``oidc`` (tokens that an identity provider signed), ``rate_limits`` and ``access_log``. The house file
is the authority on people: a credential names somebody, and what they may do is looked up at every request.
"""
